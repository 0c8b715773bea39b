// SPDX-License-Identifier: Apache-2.0
#include "daemon/scheduler_times.h"

#include "base/proc_fields.h"
#include "daemon/task_file.h"

namespace crosstalk::daemon {

std::optional<SchedulerTimes> scheduler_times(pid_t pid, pid_t tid) {
  const auto file = task_file(pid, tid, "schedstat");
  const auto counts = file ? schedule_counts(*file) : std::nullopt;
  return counts ? std::optional(SchedulerTimes{counts->ran_ns, counts->ready_ns}) : std::nullopt;
}

}  // namespace crosstalk::daemon
