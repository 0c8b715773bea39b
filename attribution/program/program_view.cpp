// SPDX-License-Identifier: Apache-2.0
#include "attribution/program/program_view.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace crosstalk::attribution {

std::vector<symbolizer::Frame> ProgramView::frames(Moment moment, std::uint64_t address) const {
  if (const auto place = spaces_.find(moment, address)) {
    return frames(*place);
  }
  symbolizer::Frame frame;
  frame.function = "[unknown]";
  auto found = jit_frame(moment, address);
  if (found && !found->function.empty()) {
    frame = std::move(*found);
  }
  return {frame};
}

std::vector<symbolizer::Frame> ProgramView::frames(ModulePlace place) const {
  const symbolizer::CodeLocation& location = code_.locate(place);
  std::vector<symbolizer::Frame> frames = location.frames;
  const std::uint64_t begin = location.function_begin;
  const std::string& path = spaces_.files()[place.file].path;
  if (frames.empty()) {
    frames.emplace_back();
  }
  for (symbolizer::Frame& frame : frames) {
    if (frame.function.empty()) {
      frame.function = path.empty() ? "[vdso]" : nameless_function(module_name(processes_, path), begin);
    }
  }
  return frames;
}

std::optional<symbolizer::Frame> ProgramView::jit_frame(Moment moment, std::uint64_t address) const {
  constexpr int most_generations = 64;  // a damaged profile's processes may be each other's parents
  for (int i = 0; i < most_generations && moment.process.value < processes_.size(); ++i) {
    const profile::ProcessRow& process = processes_[moment.process.value];
    if (auto frame = code_.jit_frame(process.pid, address, moment.time_ns)) {
      return frame;
    }
    if (!process.modules_of) {
      break;
    }
    moment = {*process.modules_of, std::min(moment.time_ns, process.begin_ns)};
  }
  return std::nullopt;
}

std::optional<symbolizer::MemoryAccess> ProgramView::access_before(Moment moment, std::uint64_t ip) const {
  // The instruction lies before ip; ip itself may be the first byte after the module.
  const auto place = spaces_.find(moment, ip - 1);
  if (!place) {
    return std::nullopt;
  }
  return code_.access_before({place->file, place->address + 1});
}

bool is_unknown(const symbolizer::Frame& frame) {
  const std::string& name = frame.function;
  const std::size_t offset = name.rfind("+0x");
  return name.empty() || (name.front() == '[' && name.back() == ']') ||
         (offset != std::string::npos && name.find_first_not_of("0123456789abcdef", offset + 3) == std::string::npos);
}

std::string nameless_function(const std::string& module, std::uint64_t begin) {
  if (begin == 0) {
    return "[" + base_name(module) + "]";
  }
  std::array<char, 24> offset{};
  std::snprintf(offset.data(), offset.size(), "+0x%llx", static_cast<unsigned long long>(begin));
  return base_name(module) + offset.data();
}

std::string source_name(const std::string& file, std::uint32_t line) {
  return file.empty() || line == 0 ? std::string() : base_name(file) + ":" + std::to_string(line);
}

std::string allocated_in_words(const symbolizer::Frame& frame) {
  const std::string at = source_name(frame.source.file, frame.source.line);
  return "allocated" + (at.empty() ? "" : " at " + at) + (frame.function.empty() ? "" : " in " + frame.function);
}

std::string call_name(const std::string& function) {
  const bool name = !function.empty() && function.front() != '[' && function.find("+0x") == std::string::npos;
  return name && function.find('(') == std::string::npos ? function + "()" : function;
}

void StackTable::want(StackId stack, Moment moment) {
  if (stack.value != 0 && !is_beginning(stack)) {
    wanted_.try_emplace(stack, Wanted{moment, std::nullopt});
  }
}

void StackTable::want(StackId stack, ThreadId thread, Moment moment) {
  if (stack.value != 0 && !is_beginning(stack)) {
    wanted_.try_emplace(stack, Wanted{moment, thread});
  }
}

void StackTable::add(const profile::StackRow& row, const ProgramView& view) {
  const auto it = wanted_.find(row.id);
  if (it == wanted_.end()) {
    return;
  }
  const auto& [moment, thread] = it->second;
  std::vector<symbolizer::StackFrame> frames = view.code().unwind(row, view.spaces().mapped(moment));
  std::vector<std::uint64_t> addresses(frames.size());
  std::transform(frames.begin(), frames.end(), addresses.begin(), [](const auto& frame) { return frame.address; });
  if (thread) {
    by_thread_[*thread].push_back({moment.time_ns, std::move(frames)});
  }
  unwound_[row.id] = &way(std::move(addresses));
}

StackId StackTable::enter(std::vector<std::uint64_t> addresses) {
  Unwound& known = way(std::move(addresses));
  if (known.beginning.value == 0) {
    known.beginning = StackId{first_beginning + beginnings_++};
    unwound_[known.beginning] = &known;
  }
  return known.beginning;
}

StackTable::Unwound& StackTable::way(std::vector<std::uint64_t> addresses) {
  const auto [way, fresh] = ways_.try_emplace(std::move(addresses));
  if (fresh) {
    way->second.addresses = way->first;
    if (!way->first.empty()) {
      const std::vector<std::uint64_t> callers(way->first.begin() + 1, way->first.end());
      way->second.callers = callers_.try_emplace(callers, static_cast<std::uint32_t>(callers_.size())).first->second;
    }
  }
  return way->second;
}

std::span<const StackTable::Seen> StackTable::of_thread(ThreadId thread) const {
  const auto it = by_thread_.find(thread);
  return it == by_thread_.end() ? std::span<const Seen>{} : std::span<const Seen>{it->second};
}

std::vector<symbolizer::Frame> call_path(const ProgramView& view, Moment moment, std::uint64_t instruction,
                                         std::span<const std::uint64_t> stack) {
  std::vector<symbolizer::Frame> path = view.frames(moment, instruction);
  for (std::size_t i = 1; i < stack.size(); ++i) {
    // A return address may be the first byte of the next line, or of the next function: looks up the call before it.
    std::vector<symbolizer::Frame> caller = view.frames(moment, stack[i] - 1);
    path.insert(path.end(), std::make_move_iterator(caller.begin()), std::make_move_iterator(caller.end()));
  }
  return path;
}

}  // namespace crosstalk::attribution
