// SPDX-License-Identifier: Apache-2.0
// The CPU time of a thread, as the recorder's last line and reports state it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profile/model.h"

namespace crosstalk::profile {

/// True if the thread ended after some milliseconds or a few sampling periods: whether it was sampled is a matter of
/// chance, and its samples represent other threads like it.
[[nodiscard]] inline bool is_brief(const ThreadRow& thread) {
  constexpr std::uint64_t ns_per_us = 1000;
  constexpr std::uint64_t brief_periods = 4;
  constexpr std::uint64_t brief_ns = 20'000'000;  // at 3 % of it, one watch is affordable: others' have to speak for it
  return thread.end_ns != 0 && thread.cpu_ns != 0 &&
         thread.cpu_ns < std::max(brief_periods * thread.period_us * ns_per_us, brief_ns);
}

/// `sampled_ns`: the time that its samples represent. It may extend beyond the last reading of the thread's own clock.
[[nodiscard]] inline std::uint64_t cpu_time_ns(const ThreadRow& thread, std::uint64_t sampled_ns) {
  return is_brief(thread) ? thread.cpu_ns : std::max(thread.cpu_ns, sampled_ns);
}

}  // namespace crosstalk::profile
