// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_self_test.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/unique_fd.h"
#include "collectors/pmu/event_trial.h"

namespace crosstalk::collectors::event_self_test_test {
namespace {

constexpr std::uint64_t period = 4096;

SelfTestFindings findings(std::uint64_t count, std::uint64_t samples, std::uint64_t running_ns = 1'000'000) {
  SelfTestFindings found;
  found.period = period;
  found.count = count, found.samples = samples, found.running_ns = running_ns;
  return found;
}

SelfTestFindings failed_with(int error) {
  SelfTestFindings found = findings(0, 0, 0);
  found.failed = "mmap", found.error = error;
  return found;
}

TEST(SelfTest, IsJudgedByTheCountAndTheSamples) {
  EXPECT_EQ(judge_self_test(findings(9 * period, 1)), SelfTestVerdict::samples);
  EXPECT_EQ(judge_self_test(findings(0, 1)), SelfTestVerdict::samples) << "a sample says more than a count";
  EXPECT_EQ(judge_self_test(findings(9 * period, 0)), SelfTestVerdict::counts_only);
  EXPECT_EQ(judge_self_test(findings(0, 0)), SelfTestVerdict::silent);
  EXPECT_EQ(judge_self_test(findings(2 * period, 0)), SelfTestVerdict::untestable)
      << "the sample may have been under way";
  EXPECT_EQ(judge_self_test(findings(0, 0, 0)), SelfTestVerdict::untestable) << "others had the counters";
  EXPECT_EQ(judge_self_test(failed_with(EPERM)), SelfTestVerdict::untestable);
}

TEST(SelfTest, ARefusalSaysCauseValueAndRemedy) {
  const auto said = [](const SelfTestFindings& found, bool watchdog = false) {
    return self_test_refusal("cpu/mem-loads/", found, watchdog).message;
  };
  EXPECT_EQ(said(findings(0, 0)),
            "the kernel takes cpu/mem-loads/, but it never counts: 0 in 20 ms of loads, stores and branches; give the "
            "virtual machine a whole PMU (qemu: -cpu host,pmu=on), or the machine a newer firmware");
  EXPECT_EQ(said(findings(40960, 0)),
            "the kernel takes cpu/mem-loads/, but it never samples: it counted 40960 in 20 ms of loads, stores and "
            "branches, at a period of 4096; give the virtual machine a whole PMU (qemu: -cpu host,pmu=on), or the "
            "machine a newer firmware");
  EXPECT_EQ(said(findings(0, 0, 0)),
            "the kernel takes cpu/mem-loads/, but it had no counter in 20 ms of loads, stores and branches; end what "
            "else measures (perf, another profiler, the host of a virtual machine)");
  EXPECT_NE(said(findings(0, 0, 0), true).find("sudo sysctl kernel.nmi_watchdog=0"), std::string::npos);
  EXPECT_NE(said(findings(5000, 0)).find("it counted only 5000"), std::string::npos);
  EXPECT_NE(said(failed_with(EPERM)).find("cannot be tested: mmap: Operation not permitted; see ulimit -l"),
            std::string::npos);
}

/// An event of the kernel's own, of this thread.
MemoryEvent of_kernel(std::uint64_t config) {
  MemoryEvent event;
  event.name = "an event";
  event.source = profile::SourceKind::counter;
  event.attr.type = PERF_TYPE_SOFTWARE;
  event.attr.config = config;
  event.attr.sample_period = 1'000'000'000;
  complete({}, event.attr);
  return event;
}

bool are_forbidden(const MemoryEvent& event) {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_perf_event_open, &event.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  return !fd.valid();
}

// Nobody waits for a second of CPU time: a shorter period does.
TEST(SelfTest, ThoseThatCountAndSamplePass) {
  const MemoryEvent clock = of_kernel(PERF_COUNT_SW_TASK_CLOCK);
  if (are_forbidden(clock)) {
    GTEST_SKIP() << "perf events: they are forbidden here";
  }
  const auto tried = try_event(clock);
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_EQ(tried->attr.sample_period, clock.attr.sample_period);
}

// The kernel has an event that it takes and never counts, and whose rare kin may rightly stay at 0.
TEST(SelfTest, OneThatNeverCountsIsFound) {
  const MemoryEvent dummy = for_self_test(of_kernel(PERF_COUNT_SW_DUMMY));
  const UniqueFd fd(static_cast<int>(::syscall(SYS_perf_event_open, &dummy.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!fd.valid()) {
    GTEST_SKIP() << "perf events: they are forbidden here";
  }
  const SelfTestFindings found = test_event({fd.get(), fd.get(), 0}, dummy.attr.sample_period);
  EXPECT_EQ(judge_self_test(found), SelfTestVerdict::silent) << (found.failed != nullptr ? found.failed : "");
  EXPECT_TRUE(try_event(of_kernel(PERF_COUNT_SW_DUMMY))) << "nothing here surely makes it";
}

TEST(SelfTest, LeavesTheThreadsProcessorsAlone) {
  cpu_set_t before, after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  MemoryEvent event = of_kernel(PERF_COUNT_SW_CPU_CLOCK);
  event.each_cpu = true;
  const auto tried = try_event(event);
  EXPECT_TRUE(tried || tried.error().message.find("the kernel refuses") == 0) << tried.error().message;
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(SelfTest, WorkEndsAsSoonAsItIsDone) {
  int rounds = 0;
  work_until([&] { return ++rounds == 3; });
  EXPECT_EQ(rounds, 3);
}

TEST(SelfTest, APeriodIsShortenedAndALatencyIsNotWaitedFor) {
  MemoryEvent loads;
  loads.source = profile::SourceKind::pebs;
  loads.attr.config = 0x1cd;
  loads.attr.config1 = 0x500000200;
  loads.attr.sample_period = 500'000;
  EXPECT_EQ(for_self_test(loads).attr.config1, 0x500000003U) << "every load, other bits as they were";
  EXPECT_EQ(for_self_test(loads).attr.sample_period, longest_tested_period);
  loads.attr.sample_period = 1024;
  EXPECT_EQ(for_self_test(loads).attr.sample_period, 1024U);
}

TEST(SelfTest, OnlySomeEventsSurelyHappen) {
  MemoryEvent event;
  event.source = profile::SourceKind::pebs;
  event.attr.config = 0x1cd;
  EXPECT_TRUE(surely_happens(event));
  event.attr.config = 0x20d1;  // misses of the last level
  EXPECT_FALSE(surely_happens(event));
  event.source = profile::SourceKind::ibs;
  event.weight_unit = profile::WeightUnit::micro_ops;
  EXPECT_TRUE(surely_happens(event));
  event.weight_unit = profile::WeightUnit::occurrences;
  EXPECT_FALSE(surely_happens(event)) << "filtered";
  event.source = profile::SourceKind::counter;
  event.attr.type = PERF_TYPE_RAW;
  event.attr.config = 0x5300c0;  // as libpfm4 encodes it
  EXPECT_TRUE(surely_happens(event));
  event.attr.config = 0x15300c0;  // cycles with an instruction or more
  EXPECT_FALSE(surely_happens(event));
}

}  // namespace
}  // namespace crosstalk::collectors::event_self_test_test
