// SPDX-License-Identifier: Apache-2.0
// Replaces the surroundings of a session's attaching, handlers and threads in a target, beside the kernel
// (fake_kernel.h): clocks, samples, interposed functions and stepping aside, which only record that they were called.
#pragma once

#include <setjmp.h>
#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collectors/in_target/session/direct_calls.h"
#include "collectors/in_target/threads/thread_place.h"

namespace crosstalk::in_target::test {

/// One at a time. Without one, every query answers as in a plain program.
struct FakeTarget {
  FakeTarget();
  ~FakeTarget();
  FakeTarget(const FakeTarget&) = delete;
  FakeTarget& operator=(const FakeTarget&) = delete;

  // The program, as tests have it
  DirectCalls direct_calls;  ///< that its code makes
  bool in_recorders_pid_namespace = true;
  bool blocks_trap = false;                  ///< it wants SIGTRAP blocked
  struct sigaction trap_action {};           ///< it wants for SIGTRAP; SIG_DFL at first
  bool timers_are_ours = true;               ///< there are POSIX timers that can be forgone
  std::uint64_t vdso_at = 0x7000'0000'0000;  ///< of one page

  // Requests of the code under test
  std::vector<std::string> aside;  ///< steps aside and what was forgone, in order: the message's code, "" without one
  std::uint32_t clocks_started = 0, clocks_stopped = 0;
  std::uint32_t accesses_told = 0, accesses_closed = 0;  ///< the former: while their events were there still
  std::uint32_t accesses_forgotten = 0;
  std::uint32_t waits_begun_of = 0, waits_ended = 0;
  std::uint32_t regions_begun_of = 0, regions_ended_of = 0;
  std::uint64_t life_ns = 0;
  std::vector<std::uint64_t> sampled_at;  ///< instruction pointers
  std::uint32_t looks_for_threads = 0;
  std::vector<ThreadPlace> adopted;
  std::uint32_t tracked_blocks = 0, untracked_blocks = 0;
  std::uint32_t disowned_signals = 0;
  std::uint32_t perf_clocks_forgone = 0;
  std::vector<int> handed_over;  ///< signals that went on to a handler of the program's; it is left by `way_out`
  sigjmp_buf way_out;
};

}  // namespace crosstalk::in_target::test
