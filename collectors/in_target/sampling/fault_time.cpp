// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/fault_time.h"

#include <sys/resource.h>

#include <algorithm>

#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

// Faults more frequent than this count as many. A large fault takes longer than this time, a small one a hundredth of
// it.
constexpr std::uint64_t ns_a_fault = 250'000;
// The kernel's accounts, and a fine clock's samples, advance by ticks: a sample is owed at most two.
constexpr std::int64_t most_owed_ns = 8'000'000;

std::uint64_t nanoseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_usec) * 1000U;
}

bool are_many(std::uint64_t faults, std::uint64_t cpu_ns) { return faults * ns_a_fault >= cpu_ns; }

}  // namespace

ThreadUsage usage_of_thread() {
  rusage usage{};
  system_call(SYS_getrusage, RUSAGE_THREAD, &usage);
  return {static_cast<std::uint64_t>(usage.ru_nvcsw) + static_cast<std::uint64_t>(usage.ru_nivcsw),
          static_cast<std::uint64_t>(usage.ru_minflt), nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime)};
}

void begin_fault_time(ThreadState& self, const ThreadUsage& used) {
  self.faults_often = true;  // nothing is known yet
  self.faults_seen = used.faults;
  self.kernel_seen_ns = used.kernel_ns;
  self.kernel_owed_ns = 0;
}

void review_fault_time(ThreadState& self, const ThreadUsage& used, std::uint64_t faults, std::uint64_t cpu_ns) {
  if (!self.faults_often) {
    begin_fault_time(self, used);
  }
  self.faults_often = are_many(faults, cpu_ns);
}

// The coarse clock runs out at the very tick by which the kernel accounts, so that each sample's is its own.
bool is_fault_time(ThreadState& self, const collectors::Observation& seen) {
  if (!self.faults_often) {
    return false;
  }
  const ThreadUsage now = usage_of_thread();
  const std::uint64_t stands_for_ns = seen.cpu_ns / self.one_in;
  const auto whole_ns = static_cast<std::int64_t>(stands_for_ns);
  const bool many = are_many(now.faults - self.faults_seen, stands_for_ns);
  const std::int64_t carried_ns =
      self.clock == profile::ClockKind::perf ? std::min(self.kernel_owed_ns, most_owed_ns) : 0;
  self.kernel_owed_ns = carried_ns + static_cast<std::int64_t>(now.kernel_ns - self.kernel_seen_ns);
  self.faults_seen = now.faults;
  self.kernel_seen_ns = now.kernel_ns;
  const bool in_fault = !seen.in_kernel && many && 2 * self.kernel_owed_ns >= whole_ns;
  self.kernel_owed_ns -= seen.in_kernel || in_fault ? whole_ns : 0;
  return in_fault;
}

}  // namespace crosstalk::in_target
