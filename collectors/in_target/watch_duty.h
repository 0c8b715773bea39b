// SPDX-License-Identifier: Apache-2.0
// How much of the time a thread's watchpoints are kept open. An open event costs its thread something at each context
// switch, even while it is disabled; a thread that switches tens of thousands of times a second would pay more for
// being watchable than the budget allows. Such a thread is watchable for a part of each cycle, the same part as the
// others of its process, so that they can be watched together. Chance has no part in it, but neither has the program:
// the samples of the watchable part stand for the others.
#pragma once

#include <cstdint>

#include "collectors/in_target/thread_state.h"

namespace crosstalk::in_target {

/// Parts of a cycle, as in ThreadState::watch_duty.
inline constexpr std::uint32_t full_duty = 1024;

/// The duty that keeps `switches` within a thread's `cpu_ns` of CPU time within their share of the budget, a fraction
/// of CPU time, when each costs `presence_cost_ns` while the watchpoints are open.
constexpr std::uint32_t duty_for(std::uint64_t switches, std::uint64_t cpu_ns, double budget,
                                 std::uint32_t presence_cost_ns) {
  constexpr double presence_share = 0.6;               // of the budget, for being watchable
  constexpr std::uint32_t least_duty = full_duty / 8;  // below that too little would be seen
  constexpr std::uint32_t nearly_full = 900;           // not worth the opening and closing
  const double cost = static_cast<double>(switches) * presence_cost_ns;
  const double allowed = presence_share * budget * static_cast<double>(cpu_ns);
  if (cost * nearly_full <= allowed * full_duty) {
    return full_duty;
  }
  const double duty = allowed / cost * full_duty;
  return duty < least_duty ? least_duty : static_cast<std::uint32_t>(duty);
}

/// Opens or closes the calling thread's watchpoints as its duty has it. Signal-safe.
void keep_duty(ThreadState& self, std::uint64_t now_ns);

}  // namespace crosstalk::in_target
