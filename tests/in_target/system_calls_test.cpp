// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/system_calls.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace crosstalk::in_target::system_calls_test {
namespace {

TEST(SystemCalls, CurrentCpuIsTheOneThatTheThreadIsBoundTo) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
      EXPECT_EQ(current_cpu(), cpu);
    }
  }
  sched_setaffinity(0, sizeof before, &before);
}

TEST(SystemCalls, ClocksGoOnWithoutTheVdso) {
  ASSERT_EQ(vdso_clock_gettime.load(), nullptr);
  const std::uint64_t first = monotonic_ns();
  vdso_clock_gettime.store(&clock_gettime);
  const std::uint64_t second = monotonic_ns();
  vdso_clock_gettime.store(nullptr);
  const std::uint64_t third = monotonic_ns();
  EXPECT_LE(first, second);
  EXPECT_LE(second, third);
  EXPECT_LT(third - first, 1'000'000'000U);
}

}  // namespace
}  // namespace crosstalk::in_target::system_calls_test
