// SPDX-License-Identifier: Apache-2.0
#include "daemon/scheduler_times.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"

namespace crosstalk::daemon::scheduler_times_test {
namespace {

void run_for(std::uint64_t ns) {
  for (const std::uint64_t end = thread_cpu_ns() + ns; thread_cpu_ns() < end;) {
  }
}

TEST(SchedulerTimes, AThreadThatIsNotThereHasNone) { EXPECT_FALSE(scheduler_times(::getpid(), 0)); }

TEST(SchedulerTimes, TheTimeRunIsTheThreads) {
  run_for(30'000'000);
  const auto times = scheduler_times(::getpid(), ::gettid());
  if (!times) {
    GTEST_SKIP() << "this kernel does not count (CONFIG_SCHED_INFO)";
  }
  EXPECT_NEAR(static_cast<double>(times->ran_ns), static_cast<double>(thread_cpu_ns()), 20e6);
}

TEST(SchedulerTimes, TwoThreadsOnOneProcessorWaitForEachOther) {
  if (!scheduler_times(::getpid(), ::gettid())) {
    GTEST_SKIP() << "this kernel does not count (CONFIG_SCHED_INFO)";
  }
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const auto waited = scheduler_times(::getpid(), ::gettid())->waited_ns;
  std::thread other([] { run_for(100'000'000); });
  run_for(100'000'000);
  const auto waits = scheduler_times(::getpid(), ::gettid())->waited_ns - waited;
  other.join();
  ::sched_setaffinity(0, sizeof before, &before);
  EXPECT_GT(waits, 30'000'000U);
}

}  // namespace
}  // namespace crosstalk::daemon::scheduler_times_test
