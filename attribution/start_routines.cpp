// SPDX-License-Identifier: Apache-2.0
#include "attribution/start_routines.h"

#include <algorithm>
#include <iterator>

#include "attribution/model/sentences.h"
#include "attribution/program/own_code.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t most_candidates = 4;  // of a thread; deep stacks are cut short when they are recorded

/// True for the code that the linker puts before main().
bool is_entry(const symbolizer::Frame& frame) { return frame.function == "_start"; }

/// The function's name. The name of a lambda does not identify it, so its file follows.
std::string name_of(const symbolizer::Frame& frame) {
  const bool nameless =
      frame.function.find("(anonymous)") != std::string::npos || frame.function.find("{lambda") != std::string::npos;
  const std::string file = base_name(frame.source.file);
  return nameless && !file.empty() ? frame.function + " in " + file : frame.function;
}

std::vector<std::string> most_first(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::string> names;
  std::transform(counts.begin(), counts.end(), std::back_inserter(names), [](const auto& each) { return each.first; });
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return counts.at(a) > counts.at(b); });
  return names;
}

}  // namespace

void StartRoutines::want(std::span<const profile::WatchRow> watches, StackTable& stacks) {
  for (const profile::WatchRow& watch : watches) {
    if (watch.sample_stack.value == 0 || !view_.knows(watch.thread)) {
      continue;
    }
    std::vector<Candidate>& candidates = candidates_[watch.thread.value];
    if (candidates.size() < most_candidates) {
      candidates.push_back({watch.sample_stack, view_.moment(watch.thread, watch.time_ns)});
      stacks.want(watch.sample_stack, candidates.back().moment);
    }
  }
}

void StartRoutines::name(std::vector<ThreadSummary>& threads, const StackTable& stacks) const {
  for (ThreadSummary& thread : threads) {
    if (const auto candidates = candidates_.find(thread.index); candidates != candidates_.end()) {
      for (const Candidate& candidate : candidates->second) {
        if (thread.start_routine.empty()) {
          thread.start_routine = start_of(candidate.moment, stacks.addresses(candidate.stack));
        }
      }
    }
    if (thread.start_routine.empty()) {
      thread.start_routine = given(thread.index);
    }
  }
}

std::string StartRoutines::given(std::uint32_t thread) const {
  const profile::ThreadRow& row = view_.threads()[thread];
  const Moment moment = view_.moment(ThreadId{thread}, row.begin_ns);
  if (row.start_routine == 0 || in_runtime_library(view_, moment, row.start_routine)) {
    return {};
  }
  const std::vector<symbolizer::Frame> frames = view_.frames(moment, row.start_routine);
  const symbolizer::Frame& function = frames.back();  // not what is inlined at its begin
  return is_library_code(function) || is_unknown(function) ? std::string() : name_of(function);
}

/// Searches from the outside in: first the library's own frames at a thread's beginning, then the routine. A stack
/// without such frames was cut short.
std::string StartRoutines::start_of(Moment moment, std::span<const std::uint64_t> stack) const {
  bool whole = false;
  for (std::size_t depth = stack.size(); depth-- > 0;) {
    const std::uint64_t address = depth == 0 ? stack[depth] : stack[depth] - 1;  // in the call, not after it
    const std::vector<symbolizer::Frame> frames = view_.frames(moment, address);
    const auto own = std::find_if_not(frames.rbegin(), frames.rend(), [](const symbolizer::Frame& frame) {
      return is_library_code(frame) || is_entry(frame) || is_unknown(frame);
    });
    if (in_runtime_library(view_, moment, address) || own == frames.rend()) {
      whole = whole || in_runtime_library(view_, moment, address) || is_entry(frames.back()) ||
              is_library_code(frames.back());
      continue;
    }
    return whole ? name_of(*own) : std::string();
  }
  return {};
}

std::vector<std::string> StartRoutines::given_to_unsampled(std::span<const ThreadTotal> totals) const {
  std::map<std::pair<ProcessId, std::uint64_t>, std::pair<std::uint32_t, std::size_t>> seen;  // one of them, how many
  for (std::uint32_t i = 0; i < view_.threads().size(); ++i) {
    const profile::ThreadRow& row = view_.threads()[i];
    const bool first = view_.processes()[row.process.value].pid == row.tid;  // nobody made it
    if (!first && row.cpu_ns != 0 && (i >= totals.size() || totals[i].samples == 0)) {
      ++seen.try_emplace({row.process, row.start_routine}, i, 0).first->second.second;
    }
  }
  std::map<std::string, std::size_t> named;
  for (const auto& [routine, threads] : seen) {
    const std::string name = given(threads.first);
    if (name.empty()) {
      return {};
    }
    named[in_short(name)] += threads.second;
  }
  return most_first(named);
}

std::vector<std::string> creation_places(std::span<const profile::ThreadCreationRow> creations, const ProgramView& view,
                                         const StackTable& stacks) {
  std::map<std::string, std::size_t> seen;
  for (const profile::ThreadCreationRow& creation : creations) {
    const std::span<const std::uint64_t> stack = stacks.addresses(creation.stack);
    if (stack.empty() || !view.knows(creation.thread)) {
      continue;
    }
    const Moment moment = view.moment(creation.thread, creation.time_ns);
    const OwnPlace place = own_place(view, moment, stack.front(), stack);
    const symbolizer::Frame& frame = place.frame;
    if (!is_unknown(frame) && !is_all_library(view, moment, place.address)) {
      ++seen[place_in_words(frame.function, frame.source.file, frame.source.line)];
    }
  }
  return most_first(seen);
}

}  // namespace crosstalk::attribution
