// SPDX-License-Identifier: Apache-2.0
#include "daemon/thread_names.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

namespace crosstalk::daemon::thread_names_test {
namespace {

constexpr std::uint64_t ms = 1'000'000;

TEST(ThreadNames, AreWhatTheKernelCallsThreadsNow) {
  ::prctl(PR_SET_NAME, "one\ntwo\n");
  EXPECT_EQ(thread_name(::getpid(), ::gettid()), "one\ntwo\n");
  ::prctl(PR_SET_NAME, "");
  EXPECT_EQ(thread_name(::getpid(), ::gettid()), "");
  EXPECT_EQ(thread_name(::getpid(), 0), std::nullopt);
}

TEST(ThreadNames, TheExecutableIsKnown) {
  EXPECT_EQ(executable_of(::getpid()), std::filesystem::canonical("/proc/self/exe").string());
  EXPECT_EQ(executable_of(0), "");
}

TEST(ThreadNames, AreLookedAtSoonAndThenOnceASecond) {
  NameSchedule schedule(1000 * ms);
  std::vector<std::uint64_t> looks;
  for (std::uint64_t now = 1000; now < 5000; now += 10) {
    if (schedule.due(now * ms)) {
      looks.push_back(now);
    }
  }
  EXPECT_EQ(looks, (std::vector<std::uint64_t>{1000, 1050, 1100, 1200, 1400, 1800, 2600, 3600, 4600}));
}

}  // namespace
}  // namespace crosstalk::daemon::thread_names_test
