// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/stack_variables.h"

#include <algorithm>
#include <utility>

namespace crosstalk::attribution {

const std::vector<StackVariables::Seen>& StackVariables::in_order(ThreadId owner) {
  const auto [it, fresh] = in_order_.try_emplace(owner);
  if (fresh) {
    for (const StackTable::Seen& seen : stacks_.of_thread(owner)) {
      if (!seen.frames.empty()) {
        it->second.push_back(&seen);
      }
    }
    std::sort(it->second.begin(), it->second.end(), [](Seen a, Seen b) { return a->time_ns < b->time_ns; });
  }
  return it->second;
}

std::optional<OnStack> StackVariables::find(ThreadId owner, std::uint64_t time_ns, std::uint64_t address) {
  const std::vector<Seen>& copies = in_order(owner);
  const auto after = std::upper_bound(copies.begin(), copies.end(), time_ns,
                                      [](std::uint64_t time, Seen seen) { return time < seen->time_ns; });
  if (after != copies.begin()) {
    const StackTable::Seen& before = **std::prev(after);
    if (address >= before.frames.front().sp) {
      return in_copy(owner, before, address);
    }
  }
  return after != copies.end() ? in_copy(owner, **after, address) : std::nullopt;
}

std::optional<OnStack> StackVariables::in_copy(ThreadId owner, const StackTable::Seen& seen,
                                               std::uint64_t address) const {
  const auto frame = std::find_if(seen.frames.begin(), seen.frames.end(),
                                  [&](const symbolizer::StackFrame& f) { return f.sp <= address && address < f.end; });
  if (frame == seen.frames.end()) {
    return std::nullopt;
  }
  const Moment moment = view_.moment(owner, seen.time_ns);
  // A return address may be the first byte of the next block: looks up the call before it.
  const auto place = view_.spaces().find(moment, frame->address - (frame == seen.frames.begin() ? 0 : 1));
  auto variable = place ? view_.code().stack_variable(*place, *frame, address) : std::nullopt;
  if (!variable || variable->name.empty()) {
    return std::nullopt;
  }
  const auto& frames = view_.code().locate(*place).frames;
  return OnStack{place->file, std::move(*variable), frames.empty() ? "" : frames.back().function};
}

}  // namespace crosstalk::attribution
