// SPDX-License-Identifier: Apache-2.0
// Tests the numbers of our descriptors, and the program's view of them, under limits of all kinds. Each test runs in a
// process of its own, because it changes the process's limit.
#include "collectors/in_target/sys/hidden_numbers.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace crosstalk::in_target::hidden_numbers_test {
namespace {

rlimit limit_now() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}
void set_limit(rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    std::perror("setrlimit");
    std::abort();
  }
}
long open_null() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
long open_null_hidden() {
  return open_hidden([] { return open_null(); });
}
/// Opens files until `free` numbers are left.
void leave(rlim_t free) {
  const rlim_t soft = limit_now().rlim_cur;
  rlim_t open_now = 0;
  for (rlim_t fd = 0; fd < soft; ++fd) {
    open_now += fcntl(static_cast<int>(fd), F_GETFD) >= 0 ? 1 : 0;
  }
  for (; open_now + free < soft; ++open_now) {
    if (open_null() < 0) {
      std::abort();
    }
  }
}

/// Runs in a child that observes itself; returns the number of the failed check, 0 if all hold.
template <class Body>
int wrong_in_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    raise_limits_in(getpid());
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class HiddenNumbers : public testing::Test {
 protected:
  void SetUp() override {
    if (limit_now().rlim_max < 4096) {
      GTEST_SKIP() << "the hard limit of descriptors is low";
    }
  }
};

TEST_F(HiddenNumbers, AreAboveTheLimitAndLeaveTheLowestToTheProgram) {
  EXPECT_EQ(wrong_in_child([] {
              set_limit(256, 2048);
              const long next = open_null();
              close(static_cast<int>(next));
              const long ours = open_null_hidden();
              const bool unseen = open_null() == next && limit_now().rlim_cur == 256 && limit_now().rlim_max == 2048;
              return ours >= 256 && unseen ? 0 : 1;
            }),
            0);
}

TEST_F(HiddenNumbers, AreNotTakenWhereFewAreLeft) {
  EXPECT_EQ(wrong_in_child([] {
              set_limit(256, 2048);
              leave(24);
              if (!has_spare_numbers() || open_null_hidden() < 256) {
                return 1;
              }
              leave(23);
              if (has_spare_numbers() || open_null_hidden() != -EAGAIN) {
                return 2;
              }
              leave(1);
              const long low = open_for_a_moment([] { return open_null(); });
              return low >= 0 && low < 256 ? 0 : 3;
            }),
            0);
}

TEST_F(HiddenNumbers, AreFreeBelowTheHighestWhichAProgramMayHaveChosen) {
  EXPECT_EQ(wrong_in_child([] {
              set_limit(256, 2048);
              const int any = static_cast<int>(open_null());
              for (int fd = 255; fd > 255 - 30; --fd) {
                dup2(any, fd);
              }
              return has_spare_numbers() ? 0 : 1;
            }),
            0);
}

TEST_F(HiddenNumbers, AreNoneWhereTheHardLimitIsTheSoftOne) {
  EXPECT_EQ(wrong_in_child([] {
              set_limit(256, 256);
              return !has_hidden_numbers() && open_null_hidden() == -EMFILE ? 0 : 1;
            }),
            0);
}

TEST_F(HiddenNumbers, SayWhatTheOpenerSaid) {
  EXPECT_EQ(wrong_in_child([] {
              set_limit(256, 2048);
              return open_hidden([]() -> long { return -ENOSPC; }) == -ENOSPC ? 0 : 1;
            }),
            0);
}

TEST_F(HiddenNumbers, AreNotTakenWhileTheLimitIsToBeSteady) {
  EXPECT_EQ(wrong_in_child([] {
              set_limit(256, 2048);
              {
                const SteadyLimit steady(true);
                if (open_null_hidden() != -EAGAIN) {
                  return 1;
                }
              }
              if (open_null_hidden() < 256) {
                return 2;
              }
              leave_limit_alone();
              if (open_null_hidden() != -EAGAIN) {
                return 3;
              }
              usleep(30'000);
              return open_null_hidden() >= 256 ? 0 : 4;
            }),
            0);
}

// The child inherits the limit that its parent had raised when the kernel made it.
TEST_F(HiddenNumbers, AChildsInheritedLimitIsPutBack) {
  EXPECT_EQ(wrong_in_child([] {
              set_limit(256, 2048);
              if (open_null_hidden() < 256) {
                return 1;
              }
              set_limit(2047, 2048);  // the highest that this limit is ever raised to
              mend_inherited_limit();
              return limit_now().rlim_cur == 256 && limit_now().rlim_max == 2048 ? 0 : 2;
            }),
            0);
}

TEST_F(HiddenNumbers, WhatTheProgramHasSetIsNotPutBack) {
  EXPECT_EQ(wrong_in_child([] {
              set_limit(256, 2048);
              if (open_null_hidden() < 256) {
                return 1;
              }
              for (const rlim_t chosen : {rlim_t{2048}, rlim_t{1024}, rlim_t{64}}) {
                set_limit(chosen, 2048);
                mend_inherited_limit();
                if (limit_now().rlim_cur != chosen) {
                  return 2;
                }
              }
              return 0;
            }),
            0);
}

// The child shares the parent's memory, with the flag, but has a limit of its own.
TEST_F(HiddenNumbers, AVforkChildDoesNotTakeItsParentsFlag) {
  EXPECT_EQ(wrong_in_child([] {
              set_limit(256, 2048);
              const SteadyLimit steady(true);
              const pid_t child = vfork();
              if (child == 0) {
                const SteadyLimit of_child(true);
                _exit(0);
              }
              waitpid(child, nullptr, 0);
              return open_null_hidden() == -EAGAIN ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace crosstalk::in_target::hidden_numbers_test
