// SPDX-License-Identifier: Apache-2.0
// One process's observation: attached to an arena or not, its threads, and the services that the other files
// of this folder share. There is one Runtime, in zero-initialised storage.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/registers.h"
#include "collectors/in_target/access/finder.h"
#include "collectors/in_target/interpose/core_interface.h"
#include "collectors/in_target/session/ring_memory.h"
#include "collectors/in_target/threads/thread_state.h"
#include "collectors/in_target/watch/watch_unit.h"
#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/budget.h"
#include "profile/arena.h"
#include "profile/records.h"
#include "profile/ring.h"

namespace crosstalk::in_target {

// Of another process (kick.h). Ignored by default, so that it does no harm to a program that has just been executed.
inline constexpr int kick_signal = SIGURG;

struct Runtime {
  profile::ArenaView arena;
  RingMemory rings;              // of the arena
  std::uint32_t slot_count = 0;  // of the arena
  std::int32_t pid = 0;
  std::uint64_t attached_ns = 0;
  std::atomic<bool> observing;
  std::atomic<bool> quiesced;     // about to exec: no new samples
  profile::SessionConfig config;  // copied out: the other side may be corrupt
  WatchUnit watch;
  watch_policy::Budget budget;
  std::atomic<std::uint64_t> stack_tokens_ns;  // time up to which the process's stack copies are paid for
  std::atomic<std::uint32_t> said;             // bits of messages that are said once
};

Runtime& runtime();
// The large tables stand apart: they are all zero at first, so they take no bytes in the library's file and
// only the pages in use are ever touched.
Registry& registry();
watch_policy::Board& board();
AccessFinder& finder();

/// The calling thread's state; null when it is not observed. Signal-safe.
ThreadState* current_thread();

/// Appends a record to a thread's ring; only its own thread may. Signal-safe.
bool append(ThreadState& self, const void* record, std::size_t bytes, const void* tail, std::size_t tail_bytes);

/// Says something to the user, through the calling thread's ring. Signal-safe.
void emit_message(const char* code, const char* text);

/// The state of the line at `line`; false when it could not be read. Signal-safe.
bool read_state(std::uint64_t line, profile::LineState& state);

struct TrapFacts {
  std::uint32_t watch = 0, sequence = 0;
  std::uint8_t word = 0;
  bool write_only = false;
  std::uint64_t line = 0;         // its address here
  bool opener_elsewhere = false;  // the watch may have been opened in another process, where the address is another
};
void record_trap(ThreadState& self, const TrapFacts& facts, const Registers& registers, std::uint64_t now_ns);
/// A slice of the calling thread's stack, if the process's allowance (`stacks a second`) permits one now.
/// `buffer` gets a StackSlice and its bytes; returns the bytes used, 0 for none.
std::size_t copy_stack(const ThreadState& self, const Registers& registers, std::uint64_t now_ns, std::byte* buffer,
                       std::size_t capacity);

std::uint32_t new_watch_id();
void watch_events_missing(long error, std::uint32_t opened);
void descriptors_closed();
void too_many_strays();

}  // namespace crosstalk::in_target
