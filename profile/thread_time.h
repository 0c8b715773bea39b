// SPDX-License-Identifier: Apache-2.0
// What CPU time of a thread counts, in the recorder's last line as in reports.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profile/model.h"

namespace crosstalk::profile {

/// It has ended after some milliseconds, or a few sampling periods: its samples have come by chance, and stand for
/// others like it.
[[nodiscard]] inline bool is_brief(const ThreadRow& thread) {
  constexpr std::uint64_t ns_per_us = 1000;
  constexpr std::uint64_t brief_periods = 4;
  constexpr std::uint64_t brief_ns = 20'000'000;  // at 3 % of it, one watch is affordable: others' have to speak for it
  return thread.end_ns != 0 && thread.cpu_ns != 0 &&
         thread.cpu_ns < std::max(brief_periods * thread.period_us * ns_per_us, brief_ns);
}

/// `sampled_ns`: what its samples stand for, which may be known for longer than its own clock was read.
[[nodiscard]] inline std::uint64_t cpu_time_ns(const ThreadRow& thread, std::uint64_t sampled_ns) {
  return is_brief(thread) ? thread.cpu_ns : std::max(thread.cpu_ns, sampled_ns);
}

}  // namespace crosstalk::profile
