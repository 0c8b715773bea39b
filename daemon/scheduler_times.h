// SPDX-License-Identifier: Apache-2.0
// How long a thread ran, and how long it could have run but had no processor, as the kernel's scheduler counts it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace crosstalk::daemon {

struct SchedulerTimes {
  std::uint64_t ran_ns = 0, waited_ns = 0;
};

/// Of thread `tid` of process `pid` since it began; nothing when there is no such thread, or the kernel does not count.
[[nodiscard]] std::optional<SchedulerTimes> scheduler_times(pid_t pid, pid_t tid);

}  // namespace crosstalk::daemon
