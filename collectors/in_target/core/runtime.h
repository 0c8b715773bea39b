// SPDX-License-Identifier: Apache-2.0
// The state of the observed process: attached to an arena or not, and its settings. There is one Runtime,
// constant-initialised. Threads and tables stand beside it.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectors/access/finder.h"
#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/ring_memory.h"
#include "collectors/in_target/core/thread_state.h"
#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/budget.h"
#include "profile/arena.h"

namespace crosstalk::in_target {

struct Runtime {
  profile::ArenaView arena;
  RingMemory rings;              // of the arena
  std::uint32_t slot_count = 0;  // of the arena
  std::int32_t pid = 0;
  std::atomic<bool> observing;
  // The process that has restricted its system calls by seccomp: this one or a vfork child of it; 0: none.
  std::atomic<std::int32_t> confined_pid;
  std::atomic<bool> foreign;   // in another pid namespace: never observed, and not reported as a fault
  std::atomic<bool> quiesced;  // about to exec: no new samples
  // The library was injected into a running process (session/injected.cpp), and will detach. So it changes neither the
  // state of threads (masks, alternate stacks) nor what child programs inherit.
  bool injected = false;
  profile::SessionConfig config;   // a copy: the recorder could overwrite the arena's
  profile::MemorySampling memory;  // a copy, too
  watch_policy::Budget budget;
};

Runtime& runtime();
// The large tables stand apart: they are all zero at first, so they take no bytes in the library's file and
// only the pages in use are ever touched.
Registry& registry();
watch_policy::Board& board();
AccessFinder& finder();

/// The calling thread's state; null when it is not observed. Signal-safe.
ThreadState* current_thread();

}  // namespace crosstalk::in_target
