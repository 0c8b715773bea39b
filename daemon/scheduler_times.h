// SPDX-License-Identifier: Apache-2.0
// Reads a thread's time on a processor and its time waiting for one, from the kernel's scheduler.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace crosstalk::daemon {

struct SchedulerTimes {
  std::uint64_t ran_ns = 0, waited_ns = 0;
};

/// Returns the times of thread `tid` of process `pid` since it began; nullopt if there is no such thread, or the kernel
/// does not count.
[[nodiscard]] std::optional<SchedulerTimes> scheduler_times(pid_t pid, pid_t tid);

}  // namespace crosstalk::daemon
