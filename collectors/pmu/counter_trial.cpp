// SPDX-License-Identifier: Apache-2.0
// Tries if the kernel lets this user open a group of counters, here and now, and if it then counts and samples.
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/unique_fd.h"
#include "collectors/pmu/counter_groups.h"
#include "collectors/pmu/event_self_test.h"
#include "collectors/pmu/event_trial.h"
#include "collectors/probe_system.h"

namespace crosstalk::collectors {
namespace {

/// Any program has cycles and instructions; the other events of a group may rightly stay at 0. A group that has no
/// counter now may have one later.
GroupOutcome test_group(std::span<const CounterEvent> group, const std::vector<UniqueFd>& open) {
  const int leader = open.front().get();
  std::uint64_t period = std::min<std::uint64_t>(group.front().attr.sample_period, longest_tested_period);
  if (::ioctl(leader, PERF_EVENT_IOC_PERIOD, &period) != 0) {
    return {};
  }
  SelfTestFindings findings = test_event({leader, leader, 0}, period);
  const SelfTestVerdict verdict = judge_self_test(findings);
  if (verdict == SelfTestVerdict::silent || verdict == SelfTestVerdict::counts_only) {
    return {ENODATA, 0, self_test_refusal(group.front().row.event, findings, false)};
  }
  for (std::size_t i = 1; i < findings.counts.size() && i < group.size(); ++i) {
    if (group[i].row.quantity == profile::CounterQuantity::instructions && findings.counts[i] == 0 &&
        verdict == SelfTestVerdict::samples) {
      findings.count = findings.samples = 0;
      return {ENODATA, i, self_test_refusal(group[i].row.event, findings, false)};
    }
  }
  return {};
}

}  // namespace

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
  return open.empty() ? GroupOutcome{} : test_group(group, open);
}

}  // namespace crosstalk::collectors
