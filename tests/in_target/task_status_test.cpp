// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/task_status.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace crosstalk::in_target::task_status_test {
namespace {

TaskStatus parsed(const std::string& line) {
  TaskStatus status;
  parse_status_line(line.data(), line.size(), status);
  return status;
}

TEST(TaskStatus, EachLineSaysOneThing) {
  EXPECT_EQ(parsed("TracerPid:\t4711").tracer, 4711);
  EXPECT_EQ(parsed("SigPnd:\t0000000080000000").pending, 0x80000000U);
  EXPECT_EQ(parsed("SigBlk:\tfffffffe7ffbfeff").blocked, 0xfffffffe7ffbfeffU);
  EXPECT_TRUE(parsed("State:\tR (running)").runnable);
  EXPECT_FALSE(parsed("State:\tS (sleeping)").runnable);
  EXPECT_FALSE(parsed("State:\t").runnable);
  EXPECT_EQ(parsed("Seccomp:\t2").seccomp, 2U);
  EXPECT_EQ(parsed("Seccomp:\t2").seccomp_filters, 0U);
  EXPECT_EQ(parsed("Seccomp_filters:\t3").seccomp_filters, 3U);
  EXPECT_EQ(parsed("Seccomp_filters:\t3").seccomp, 0U);
  EXPECT_EQ(parsed("SigQ:\t17/63432").signals_queued, 17U);
  EXPECT_EQ(parsed("TracerPid").tracer, 0);
  EXPECT_EQ(parsed("").tracer, 0);
}

TEST(TaskStatus, OfThisProcess) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_SIGPENDING, &limit), 0);
  TaskStatus status;
  ASSERT_TRUE(read_task_status(0, status));
  EXPECT_LE(status.signals_queued, limit.rlim_cur);
}

TEST(TaskStatus, OfOneThread) {
  TaskStatus status;
  std::thread([&] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    pthread_kill(pthread_self(), SIGUSR2);
    ASSERT_TRUE(read_task_status(gettid(), status));
    int taken = 0;
    sigwait(&set, &taken);
  }).join();
  EXPECT_EQ(status.blocked & (1U << (SIGUSR2 - 1)), 1U << (SIGUSR2 - 1));
  EXPECT_EQ(status.pending, 1U << (SIGUSR2 - 1));
  EXPECT_FALSE(read_task_status(0x3fffff, status));
}

TEST(TaskStatus, FlagsAreFoundBehindAnyName) {
  const auto flags = [](const std::string& line) { return parse_task_flags(line.data(), line.size()); };
  EXPECT_EQ(flags("7 (work) S 1 7 7 0 -1 4194560 9 9"), 4194560U);
  EXPECT_EQ(flags("7 (a b) c) (d) S 1 7 7 0 -1 16448 9 9"), 16448U);
  EXPECT_EQ(flags("7 (work) S 1 7"), 0U);
  EXPECT_EQ(flags(""), 0U);
}

TEST(TaskStatus, AThreadOfTheProgramsIsNoWorkerOfTheKernels) {
  prctl(PR_SET_NAME, "iou-wrk-) S 1 1");
  EXPECT_FALSE(runs_no_code(gettid()));
  EXPECT_FALSE(runs_no_code(0x3fffff));
}

// It stays in the list of threads until the last one ends.
TEST(TaskStatus, AFirstThreadThatHasLeftTheOthersRunsNoCode) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      for (int i = 0; i < 1000 && !runs_no_code(getpid()); ++i) {
        usleep(1000);
      }
      _exit(runs_no_code(getpid()) && !runs_no_code(gettid()) ? 0 : 1);
    }).detach();
    syscall(SYS_exit, 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace crosstalk::in_target::task_status_test
