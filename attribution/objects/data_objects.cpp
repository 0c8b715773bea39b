// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/data_objects.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <utility>

#include "attribution/program/own_code.h"

namespace crosstalk::attribution {
namespace {

constexpr std::uint64_t page_bytes = 4096;

bool alive(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t time_ns) {
  return begin_ns <= time_ns && (end_ns == 0 || time_ns <= end_ns);
}

std::string hex(std::uint64_t value) {
  char text[2 + 16 + 1];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string what_block(profile::BlockKind kind) {
  return kind == profile::BlockKind::mapping ? "mapping" : "heap block";
}

/// "Line[16384]", "Line[]" if blocks differ, "Line" for a single element. `object` has an element.
std::string array_name(const DataObject& object) {
  const Element& element = *object.element;
  const std::string count = object.bytes ? std::to_string(*object.bytes / element.type.bytes) : "";
  return element.type.name + (element.several ? "[" + count + "]" : "");
}

/// The block's name without its place.
std::string what_of(const DataObject& object) {
  return object.element ? array_name(object)
                        : object.name.substr(0, object.name.size() - std::min(object.name.size(), object.place.size()));
}

std::string joined(const std::string& what, const std::string& place) {
  return place.empty() || what.empty() || what.ends_with(' ') ? what + place : what + " " + place;
}

/// "#3", "#1-20, #31", "#1, #3, #5 and 12 more", for numbers in order.
std::string numbers_in_words(const std::vector<std::size_t>& numbers) {
  constexpr std::size_t most_ranges = 3;
  std::string text;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
      ++end;
    }
    if (++ranges > most_ranges) {
      return text + " and " + std::to_string(numbers.size() - i) + " more";
    }
    text += (i == 0 ? "#" : ", #") + std::to_string(numbers[i]);
    text += end - i > 1 ? "-" + std::to_string(numbers[end - 1]) : "";
    i = end;
  }
  return text;
}

/// The user's name for a shared mapping, from the kernel's.
std::string shared_name(std::string_view name) {
  constexpr std::string_view deleted = " (deleted)";
  constexpr std::string_view memfd = "/memfd:";
  constexpr std::string_view segment = "/SYSV";
  if (name.ends_with(deleted)) {
    name.remove_suffix(deleted.size());
  }
  if (name.starts_with(memfd)) {
    return "memfd " + std::string(name.substr(memfd.size()));
  }
  if (name.starts_with(segment)) {
    return "System V segment 0x" + std::string(name.substr(segment.size()));
  }
  return name.empty() || name == "/dev/zero" ? "anonymous shared memory" : std::string(name);
}

}  // namespace

DataObjects::DataObjects(const ProgramView& view, const BlockIndex& blocks, const SharedIndex& shared,
                         const StackTable& stacks)
    : view_(view), blocks_(blocks), shared_(shared), stacks_(stacks), stack_variables_(view, stacks) {}

const DataObjects::ProcessData& DataObjects::data_of(ProcessId process) {
  const auto [it, fresh] = data_.try_emplace(process);
  if (!fresh) {
    return it->second;
  }
  std::vector<MappedModule> modules = view_.spaces().all(process);
  std::erase_if(modules, [](const MappedModule& module) { return module.tls_size == 0; });
  for (std::uint32_t i = 0; i < view_.threads().size(); ++i) {
    const profile::ThreadRow& thread = view_.threads()[i];
    if (thread.process != process) {
      continue;
    }
    it->second.stacks.add(thread.stack_low, thread.stack_high, {i, thread.begin_ns, thread.end_ns});
    if (thread.thread_pointer == 0) {
      continue;
    }
    for (const MappedModule& module : modules) {
      const std::uint64_t begin = thread.thread_pointer + static_cast<std::uint64_t>(module.tls_offset);
      it->second.tls.add(begin, begin + module.tls_size, {module.file, thread.begin_ns, thread.end_ns});
    }
  }
  it->second.stacks.build();
  it->second.tls.build();
  return it->second;
}

DataRef DataObjects::resolve(ThreadId thread, std::uint64_t time_ns, std::uint64_t address) {
  const Moment moment = view_.moment(thread, time_ns);
  const std::pair key{moment.process, address};
  if (const auto it = cache_.find(key); it != cache_.end()) {
    return current(it->second);
  }
  const Found found = look_up(moment, address);
  if (found.stable) {
    cache_.emplace(key, found.ref);
  }
  return current(found.ref);
}

// Thread-local storage before stacks: the C library puts the former at the top of the latter's mapping.
DataObjects::Found DataObjects::look_up(Moment moment, std::uint64_t address) {
  if (const auto found = in_tls(moment, address)) {
    return *found;
  }
  if (const auto found = in_stack(moment, address)) {
    return *found;
  }
  if (const auto found = in_module(moment, address)) {
    return *found;
  }
  if (const auto found = in_shared(moment, address)) {
    return *found;
  }
  if (const auto found = in_block(moment, address)) {
    return *found;
  }
  return nowhere(moment, address);
}

std::optional<DataObjects::Found> DataObjects::in_tls(Moment moment, std::uint64_t address) {
  std::optional<std::pair<std::uint32_t, std::uint64_t>> block;  // file, offset
  data_of(moment.process).tls.covering(address, [&](const TlsBlock& tls, std::uint64_t begin, std::uint64_t) {
    if (!block || alive(tls.begin_ns, tls.end_ns, moment.time_ns)) {
      block = {tls.file, address - begin};
    }
  });
  if (!block) {
    return std::nullopt;
  }
  DataObject object;
  object.kind = ObjectKind::tls;
  object.file = block->first;
  object.symbol = view_.code().tls_symbol(block->first, block->second);
  const std::string module = base_name(view_.spaces().files()[block->first].path);
  if (!object.symbol) {
    object.name = "thread-local storage of " + module;
    return Found{{intern("tls " + module, object), block->second}, false};
  }
  object.name = object.symbol->name;
  object.bytes = object.symbol->bytes;
  const std::uint64_t offset = block->second - object.symbol->begin;
  return Found{{intern("tls " + module + " " + hex(object.symbol->begin), object), offset}, false};
}

std::optional<DataObjects::Found> DataObjects::in_stack(Moment moment, std::uint64_t address) {
  std::optional<std::pair<Stack, std::uint64_t>> best;  // stack, its begin
  std::uint64_t end = 0;
  data_of(moment.process).stacks.covering(address, [&](const Stack& stack, std::uint64_t low, std::uint64_t high) {
    if (!best || alive(stack.begin_ns, stack.end_ns, moment.time_ns)) {
      best = {stack, low};
      end = high;
    }
  });
  if (!best) {
    return std::nullopt;
  }
  DataObject object;
  object.kind = ObjectKind::stack;
  const std::string owner = "stack of thread " + std::to_string(best->first.thread);
  if (auto found = stack_variables_.find(ThreadId{best->first.thread}, moment.time_ns, address)) {
    const symbolizer::StackVariable& variable = found->variable;
    object.name = variable.name;
    object.bytes = variable.type.bytes;
    const std::string at = source_name(variable.declared.file, variable.declared.line);
    object.allocated_at = (at.empty() ? "" : at + " ") + found->function + ", on the " + owner;
    object.element = Element{found->file, variable.type, false};
    return Found{{intern(object.allocated_at + " " + object.name, object), address - variable.begin}, false};
  }
  object.name = owner;
  object.bytes = end - best->second;
  return Found{{intern(owner, object), address - best->second}, false};
}

std::optional<DataObjects::Found> DataObjects::in_module(Moment moment, std::uint64_t address) {
  const auto place = view_.spaces().find(moment, address);
  if (!place) {
    return std::nullopt;
  }
  DataObject object;
  object.kind = ObjectKind::global;
  object.file = place->file;
  const std::string file = std::to_string(place->file);
  object.symbol = view_.code().data_symbol(*place);
  if (!object.symbol) {
    object.name = "data of " + base_name(view_.spaces().files()[place->file].path);
    return Found{{intern("data " + file, object), place->address}, true};
  }
  object.name = object.symbol->name;
  object.bytes = object.symbol->bytes;
  const std::uint64_t offset = place->address - object.symbol->begin;
  return Found{{intern("global " + file + " " + hex(object.symbol->begin), object), offset}, true};
}

// Private memory may replace an unmapped shared mapping: the latest row at the address counts. A shared mapping's own
// block is seen at the same time.
std::optional<DataObjects::Found> DataObjects::in_shared(Moment moment, std::uint64_t address) {
  bool alone = false;
  bool block_alone = true;
  const auto bytes = shared_.find(moment, address, &alone);
  const profile::BlockRow* block = blocks_.find(moment, address, &block_alone);
  if (!bytes || (block != nullptr && block->time_ns > bytes->mapping->time_ns)) {
    return std::nullopt;
  }
  const profile::SharedMappingRow& mapping = *bytes->mapping;
  const std::string key = "shared " + hex(mapping.device) + " " + hex(mapping.inode);
  const auto known = ids_.find(key);
  if (known == ids_.end()) {
    DataObject object;
    object.kind = ObjectKind::shared;
    object.name = shared_name(mapping.name);
    object.bytes = mapping.bytes;
    if (block != nullptr) {
      object.allocation_path = allocation_path(moment, *block);
    }
    if (!object.allocation_path.empty()) {
      const std::string at =
          source_name(object.allocation_path.front().source.file, object.allocation_path.front().source.line);
      object.allocated_at = (at.empty() ? "" : at + " ") + object.allocation_path.front().function;
    }
    return Found{{intern(key, object), bytes->file_offset}, alone && block_alone};
  }
  DataObject& object = objects_[known->second];
  if (object.bytes != mapping.bytes) {  // processes have mapped different parts of it
    object.bytes.reset();
  }
  return Found{{known->second, bytes->file_offset}, alone && block_alone};
}

std::optional<DataObjects::Found> DataObjects::in_block(Moment moment, std::uint64_t address) {
  bool alone = false;
  const profile::BlockRow* block = blocks_.find(moment, address, &alone);
  if (block == nullptr) {
    return std::nullopt;
  }
  const auto [known, fresh] = known_blocks_.try_emplace(block, 0);
  if (fresh) {
    DataObject object = object_of_block(moment, *block);
    const std::string type = object.element ? object.element->type.name : "";
    const std::string key = "block " + (type.empty() ? object.name : type) + " " + object.allocated_at;
    const std::uint32_t id = intern(key, object);
    DataObject& shared = objects_[id];
    if (shared.bytes != object.bytes) {
      shared.bytes.reset();
      if (shared.element) {
        shared.element->several = shared.element->several || object.element->several;
        shared.name = joined(array_name(shared), shared.place);
      }
    }
    known->second = heap_block(id, *block);
  }
  return Found{{heap_blocks_[known->second].object, address - block->begin, known->second}, alone};
}

/// Returns the number of a block. Memory that the same code allocates again at its old place is the same block to a
/// reader.
std::uint32_t DataObjects::heap_block(std::uint32_t object, const profile::BlockRow& row) {
  const auto next = static_cast<std::uint32_t>(heap_blocks_.size());
  const auto [known, fresh] = heap_block_ids_.try_emplace({object, row.process, row.begin}, next);
  if (fresh) {
    heap_blocks_.push_back({object, row.process, row.begin, row.bytes});
  }
  return known->second;
}

void DataObjects::tell_apart(std::uint32_t object, std::span<const std::vector<std::uint32_t>> groups) {
  std::vector<std::pair<ProcessId, std::uint64_t>> order;
  const auto key = [this](std::uint32_t block) {
    return std::pair(heap_blocks_[block].process, heap_blocks_[block].begin);
  };
  for (const auto& group : groups) {
    std::transform(group.begin(), group.end(), std::back_inserter(order), key);
  }
  std::sort(order.begin(), order.end());
  for (const auto& group : groups) {
    DataObject some = objects_[object];
    std::vector<std::size_t> numbers;
    for (const std::uint32_t block : group) {
      numbers.push_back(
          static_cast<std::size_t>(std::lower_bound(order.begin(), order.end(), key(block)) - order.begin()) + 1);
      some.bytes = block == group.front() || some.bytes == heap_blocks_[block].bytes
                       ? std::optional(heap_blocks_[block].bytes)
                       : std::nullopt;
    }
    std::sort(numbers.begin(), numbers.end());
    if (some.element && some.bytes) {
      some.element->several = *some.bytes / some.element->type.bytes > 1;
    }
    const std::string what = what_of(some);
    some.site = some.name;
    some.place = joined(numbers_in_words(numbers) + " of " + std::to_string(order.size()), some.place);
    some.name = joined(what, some.place);
    some.blocks = group.size();
    for (const std::uint32_t block : group) {
      heap_blocks_[block].object = static_cast<std::uint32_t>(objects_.size());
    }
    objects_.push_back(std::move(some));
  }
}

DataObjects::Found DataObjects::nowhere(Moment moment, std::uint64_t address) {
  const std::uint64_t page = address / page_bytes * page_bytes;
  DataObject object;
  object.name = "memory at " + hex(page);
  return {{intern("nowhere " + std::to_string(moment.process.value) + " " + hex(page), object), address - page}, true};
}

DataObject DataObjects::object_of_block(Moment moment, const profile::BlockRow& block) const {
  DataObject object;
  object.kind = ObjectKind::heap;
  object.bytes = block.bytes;
  object.allocation_path = allocation_path(moment, block);
  if (object.allocation_path.empty()) {
    object.name = what_block(block.kind) + " of " + std::to_string(block.bytes) + " bytes";
    return object;
  }
  object.element = element_of(moment, block);
  const symbolizer::Frame& site = object.allocation_path.front();
  object.place = allocated_in_words(site);
  object.name = joined(object.element ? array_name(object) : what_block(block.kind), object.place);
  const std::string at = source_name(site.source.file, site.source.line);
  object.allocated_at = at.empty() ? site.function : at + " " + site.function;
  return object;
}

std::vector<std::uint64_t> DataObjects::allocation_calls(const profile::BlockRow& block) const {
  const auto stack = stacks_.addresses(block.stack);
  std::vector<std::uint64_t> calls(stack.begin(), stack.end());
  if (calls.empty() && block.site != 0) {
    calls.push_back(block.site);
  }
  return calls;
}

std::vector<symbolizer::Frame> DataObjects::allocation_path(Moment moment, const profile::BlockRow& block) const {
  std::vector<symbolizer::Frame> path;
  std::vector<symbolizer::Frame> skipped;
  for (const std::uint64_t call : allocation_calls(block)) {
    const bool runtime = in_runtime_library(view_, moment, call - 1);
    for (symbolizer::Frame& frame : view_.frames(moment, call - 1)) {
      const bool skip = path.empty() && (runtime || is_library_code(frame));
      (skip ? skipped : path).push_back(std::move(frame));
    }
  }
  const bool helpful = std::any_of(path.begin(), path.end(), [](const auto& frame) { return !is_unknown(frame); });
  return helpful || skipped.empty() ? path : skipped;
}

// Searches from the allocating library outwards, up to the first function of the program's own.
std::optional<Element> DataObjects::element_of(Moment moment, const profile::BlockRow& block) const {
  for (const std::uint64_t call : allocation_calls(block)) {
    const auto place = view_.spaces().find(moment, call - 1);
    if (!place) {
      return std::nullopt;
    }
    if (auto type = view_.code().allocated_type(*place)) {
      const bool fits = type->bytes != 0 && type->bytes <= block.bytes;
      const bool several = fits && block.bytes / type->bytes > 1;
      return fits ? std::optional(Element{place->file, std::move(*type), several}) : std::nullopt;
    }
    if (!is_all_library(view_, moment, call - 1)) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::uint32_t DataObjects::intern(const std::string& key, DataObject object) {
  const auto [it, fresh] = ids_.try_emplace(key, static_cast<std::uint32_t>(objects_.size()));
  if (fresh) {
    objects_.push_back(std::move(object));
  }
  return it->second;
}

std::vector<std::uint32_t> DataObjects::name_ranks() const {
  std::map<std::string_view, std::uint32_t> ranks;
  for (const DataObject& object : objects_) {
    ranks.try_emplace(object.name);
  }
  std::uint32_t next = 0;
  for (auto& [name, rank] : ranks) {
    rank = next++;
  }
  std::vector<std::uint32_t> result;
  result.reserve(objects_.size());
  for (const DataObject& object : objects_) {
    result.push_back(ranks[object.name]);
  }
  return result;
}

std::optional<symbolizer::FieldPath> DataObjects::field_path(std::uint32_t object, std::uint64_t offset) {
  const DataObject& o = objects_[object];
  if (o.symbol) {
    return view_.code().field(o.file, *o.symbol, offset);
  }
  if (!o.element) {
    return std::nullopt;
  }
  const std::uint64_t bytes = o.element->type.bytes;
  auto found = view_.code().field_of(o.element->file, o.element->type.type, offset % bytes);
  if (found && o.element->several) {
    const std::uint64_t index = offset / bytes;
    const bool joined = found->path.empty() || found->path.front() == '[';
    found->path = "[" + std::to_string(index) + "]" + (joined ? "" : ".") + found->path;
    found->offset += index * bytes;
  }
  return found;
}

std::string DataObjects::field(std::uint32_t object, std::uint64_t offset) {
  const auto found = field_path(object, offset);
  return found ? found->path : std::string{};
}

}  // namespace crosstalk::attribution
