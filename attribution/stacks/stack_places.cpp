// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks/stack_places.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/units.h"

namespace crosstalk::attribution {
namespace {

constexpr std::uint32_t no_file = StackPlace::no_file;

/// "futex" of "futex", "page faults and interrupts" of "[page faults and interrupts]".
std::string without_brackets(const std::string& name) {
  const bool bracketed = name.size() > 2 && name.front() == '[' && name.back() == ']';
  return bracketed ? name.substr(1, name.size() - 2) : name;
}

StackPlace without_file(symbolizer::Frame frame, std::uint64_t address) {
  StackPlace place;
  place.address = address;
  place.frames.push_back(std::move(frame));
  return place;
}

}  // namespace

std::uint32_t StackPlaces::number_of(const Key& key, bool& fresh) {
  const auto [number, added] = numbers_.try_emplace(key, static_cast<std::uint32_t>(places_.size()));
  fresh = added;
  return number->second;
}

void StackPlaces::find_mappings() {
  mapped_.resize(view_.spaces().files().size());
  std::vector<bool> found(mapped_.size());
  for (std::uint32_t process = 0; process < view_.processes().size(); ++process) {
    std::map<std::uint32_t, Mapped> here;
    for (const MappedModule& module : view_.spaces().all(ProcessId{process})) {
      if (module.file < found.size() && !found[module.file]) {
        Mapped& file = here.try_emplace(module.file, Mapped{module.begin, module.end, module.bias}).first->second;
        file.end = module.bias == file.bias ? std::max(file.end, module.end) : file.end;
      }
    }
    for (const auto& [file, mapped] : here) {
      mapped_[file] = mapped;
      found[file] = true;
    }
  }
}

std::uint32_t StackPlaces::part_of(ModulePlace place) {
  constexpr std::uint64_t in_page = page_bytes - 1;
  if (mapped_.empty()) {
    find_mappings();
  }
  const Mapped& whole = mapped_[place.file];
  const auto segment = view_.code().segment_at(place);
  const auto [number, fresh] =
      part_numbers_.try_emplace({place.file, segment ? segment->begin : 0}, static_cast<std::uint32_t>(parts_.size()));
  if (fresh) {
    const symbolizer::ModuleSpec& spec = view_.spaces().files()[place.file];
    StackFile part{spec.is_vdso ? "[vdso]" : spec.path, spec.build_id, whole.begin, whole.end, 0};
    if (segment) {  // as the loader maps it
      part.begin = (segment->begin & ~in_page) + whole.bias;
      part.end = ((segment->end + in_page) & ~in_page) + whole.bias;
      part.file_offset = segment->file_offset & ~in_page;
    }
    parts_.push_back(std::move(part));
  }
  return number->second;
}

std::uint32_t StackPlaces::of(ModulePlace place) {
  bool fresh = false;
  const std::uint32_t number = number_of({place.file, 0, place.address, {}}, fresh);
  if (!fresh) {
    return number;
  }
  StackPlace known;
  known.file = part_of(place);
  known.address = place.address + mapped_[place.file].bias;
  known.frames = view_.frames(place);
  if (const std::uint64_t begin = view_.code().locate(place).function_begin; begin != 0) {
    const symbolizer::CodeLocation& function = view_.code().locate({place.file, begin});
    known.function_line = function.frames.empty() ? 0 : function.frames.back().source.line;
  }
  StackFile& part = parts_[known.file];
  part.begin = std::min(part.begin, known.address);  // a process may have mapped more of a file than the first one
  part.end = std::max(part.end, known.address + 1);
  places_.push_back(std::move(known));
  return number;
}

std::uint32_t StackPlaces::of(Moment moment, std::uint64_t address) {
  if (const auto place = view_.spaces().find(moment, address)) {
    return of(*place);
  }
  bool fresh = false;
  const std::uint32_t number = number_of({no_file, moment.process.value, address, {}}, fresh);
  if (fresh) {
    places_.push_back(without_file(view_.frames(moment, address).front(), address));
  }
  return number;
}

std::uint32_t StackPlaces::of(const KernelEntry& entry) {
  bool fresh = false;
  const std::uint32_t number = number_of({no_file, UINT32_MAX, 0, entry.name}, fresh);
  if (fresh) {
    symbolizer::Frame frame;
    frame.function = without_brackets(entry.name);
    places_.push_back(without_file(std::move(frame), 0));
    places_.back().in_kernel = true;
  }
  return number;
}

std::uint32_t StackPlaces::unsampled() {
  bool fresh = false;
  const std::uint32_t number = number_of({no_file, UINT32_MAX, 0, unsampled_function}, fresh);
  if (fresh) {
    symbolizer::Frame frame;
    frame.function = unsampled_function;
    places_.push_back(without_file(std::move(frame), 0));
  }
  return number;
}

std::vector<StackFile> StackPlaces::finish_files(std::vector<std::uint32_t>& new_files) {
  std::vector<std::uint32_t> order;
  for (const auto& [key, part] : part_numbers_) {
    order.push_back(part);
  }
  const std::string program = view_.processes().empty() ? std::string() : view_.processes().front().executable;
  std::stable_partition(order.begin(), order.end(), [&](std::uint32_t part) { return parts_[part].path == program; });
  new_files.resize(parts_.size());
  std::vector<StackFile> files;
  for (const std::uint32_t part : order) {
    new_files[part] = static_cast<std::uint32_t>(files.size());
    files.push_back(std::move(parts_[part]));
  }
  return files;
}

StackPlaces::Finished StackPlaces::finish() && {
  Finished result;
  std::vector<std::uint32_t> new_files;
  result.files = finish_files(new_files);
  for (StackPlace& place : places_) {
    place.file = place.file == no_file ? no_file : new_files[place.file];
  }
  std::vector<std::uint32_t> order(places_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [this](std::uint32_t number) {
    const StackPlace& place = places_[number];
    return std::tie(place.file, place.in_kernel, place.address, place.frames.front().function);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
  result.index.resize(places_.size());
  for (const std::uint32_t number : order) {
    result.index[number] = static_cast<std::uint32_t>(result.places.size());
    result.places.push_back(std::move(places_[number]));
  }
  return result;
}

}  // namespace crosstalk::attribution
