// SPDX-License-Identifier: Apache-2.0
// A process that can be attached to an arena, with fakes that record the calls to its surroundings (fake_kernel.h,
// fake_target.h).
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/session/arena_mapping.h"
#include "collectors/in_target/session/forks.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/threads/threads.h"
#include "profile/records.h"
#include "tests/in_target/arena.h"
#include "tests/in_target/fake_kernel.h"
#include "tests/in_target/fake_target.h"

namespace crosstalk::in_target::test {

using Steps = std::vector<std::string>;

/// Runs checks in a forked child: 0 if all hold, else the number of the first that fails.
inline int in_child(const std::function<int()>& look, bool by_libc = true) {
  const pid_t child = by_libc ? ::fork() : static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    ::_exit(look());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// The number of the first of these that is false; 0: none.
inline int first_false(std::initializer_list<bool> facts) {
  int number = 0;
  for (const bool fact : facts) {
    ++number;
    if (!fact) {
      return number;
    }
  }
  return 0;
}

class AttachFixture : public testing::Test {
 protected:
  AttachFixture() {
    static const bool watched = [] {
      watch_forks();  // for the process's life
      return true;
    }();
    EXPECT_TRUE(watched);
    runtime().rings.stop();
  }
  ~AttachFixture() override {
    Runtime& r = runtime();
    r.observing.store(false);
    r.quiesced.store(false);
    r.injected = false;
    r.confined_pid.store(0);
    r.rings.stop();
    if (mapped_) {
      leave_own_memory(r.arena.header);
      ::munmap(r.arena.header, arena_.header().rings_offset);
    }
  }
  AttachFixture(const AttachFixture&) = delete;
  AttachFixture& operator=(const AttachFixture&) = delete;

  bool map() {
    mapped_ = map_arena(arena_.name().c_str());
    return mapped_;
  }
  /// The calling thread is observed.
  ThreadState& observe() {
    EXPECT_TRUE(map());
    runtime().pid = ::getpid();
    ThreadState* const self = begin_thread(0x1000, 0x9000, 0x7777);
    EXPECT_NE(self, nullptr);
    runtime().observing.store(true);
    return *self;
  }

  FakeKernel kernel_;
  FakeTarget target_;
  Arena arena_;
  bool mapped_ = false;
};

}  // namespace crosstalk::in_target::test
