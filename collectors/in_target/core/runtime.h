// SPDX-License-Identifier: Apache-2.0
// The state of the observed process: attached to an arena or not, its settings, its threads and tables. There is one
// Runtime, in zero-initialised storage.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectors/in_target/access/finder.h"
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
  std::atomic<std::int32_t>
      confined_pid;            // the process, this one or a vfork child of it, that has confined itself; 0: none
  std::atomic<bool> foreign;   // of another pid namespace: never observed, and nothing is wrong with it
  std::atomic<bool> quiesced;  // about to exec: no new samples
  // The library was brought into a process that ran already (session/injected.cpp), and will leave it alone again: the
  // state of single threads (masks, alternate stacks) and the state that other programs inherit stay unchanged.
  bool injected = false;
  profile::SessionConfig config;   // copied out: the other side may be corrupt
  profile::MemorySampling memory;  // as well
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
