// SPDX-License-Identifier: Apache-2.0
// Tries if the kernel lets this user open a group of counters, here and now.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/unique_fd.h"
#include "collectors/pmu/counter_groups.h"
#include "collectors/pmu/event_trial.h"
#include "collectors/probe_system.h"

namespace crosstalk::collectors {

bool nmi_watchdog_is_on() { return read_small_file("/proc/sys/kernel/nmi_watchdog").value_or("0") == "1"; }

GroupOutcome try_group(std::span<const CounterEvent> group) {
  std::vector<UniqueFd> open;
  for (std::size_t i = 0; i < group.size(); ++i) {
    constexpr pid_t own_thread = 0;
    constexpr int any_cpu = -1;
    const int leader = open.empty() ? -1 : open.front().get();
    const long fd = ::syscall(SYS_perf_event_open, &group[i].attr, own_thread, any_cpu, leader, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
      const int error = errno;
      MemoryEvent refused;
      refused.name = group[i].row.event;
      return {error, i, refusal_of(refused, error, kernel_settings())};
    }
    open.emplace_back(static_cast<int>(fd));
  }
  return {};
}

}  // namespace crosstalk::collectors
