// SPDX-License-Identifier: Apache-2.0
// Measures how long threads wait for others, from the call that may wait to its return, asleep or spinning. Sums go to
// the thread's table in the arena (profile/wait_table.h), so single waits write nothing.
//
// A wait reads the vdso's clock twice, without a system call. Measures nothing if the program has no vdso. Measures
// nothing either if the library was brought into a process that ran already: it will leave again, and a thread that
// sleeps in a function of ours would keep it there.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/thread_state.h"
#include "profile/wait_table.h"

namespace crosstalk::in_target {

/// The table of a thread, kept in its thread-local storage, and its state while it waits at the end of a parallel
/// region. A raw clone() that shares its creator's storage shares its table: its waits are then its creator's.
struct OwnWaits {
  profile::ThreadWaits* table = nullptr;
  std::int32_t pid = 0;  // the process that it was looked up in
  // at the end of a parallel region (team_waits.cpp)
  std::uint64_t begin_ns = 0;
  profile::ThreadWaits::Place place = 0;
  OwnWaits* next = nullptr;
};

/// True if the session wants waits to be measured: set when a thread begins. Every function that may wait reads it
/// first, for programs that take millions of locks a second.
extern constinit std::atomic<bool> waits_wanted __attribute__((visibility("hidden")));
/// True if waits are wanted and the session goes on. Signal-safe.
[[nodiscard]] inline bool measures_waits() {
  return __builtin_expect(static_cast<long>(waits_wanted.load(std::memory_order_relaxed)), 0) != 0 && observing();
}
/// Returns the calling thread's waits; null: it is not observed, or its waits are not measured. Normal context.
OwnWaits* own_waits();
/// True if the process has no other known thread. The C library locks without atomic instructions then, unless it is
/// asked to try. The caller may still wait, for a thread that is not known yet or for another process.
bool is_alone();
/// Adds to a table's sums, and to those of its thread's region. `waits`: 0 for a part of one.
void add_wait(profile::ThreadWaits& table, profile::ThreadWaits::Place place, std::uint64_t waited_ns,
              std::uint64_t waits = 1);

/// A thread's table as new, and whether its waits will be measured. Signal-safe.
void begin_waits(const ThreadState& self);
/// The calling thread is no longer observed.
void end_waits();
/// Called before the calling thread jumps out of its present calls.
void forget_wait();
/// True if the thread is in a wait, its stack pointer being `stack_pointer`. Signal-safe.
[[nodiscard]] bool is_waiting(const ThreadState& self, std::uint64_t stack_pointer);

/// The wait of the calling thread, while this lives, in a function whose frame is `frame` and that was called from
/// `site`. Does nothing within another wait (in a signal handler of the target, say). Keeps errno. A wait that a
/// cancellation ends does not count.
class MeasuredWait {
 public:
  MeasuredWait(profile::WaitKind kind, const void* site, const void* frame);
  ~MeasuredWait();
  MeasuredWait(const MeasuredWait&) = delete;
  MeasuredWait& operator=(const MeasuredWait&) = delete;

 private:
  profile::ThreadWaits* table_ = nullptr;  // null: it is not measured
  profile::ThreadWaits::Place place_;
  std::uint64_t begin_ns_ = 0;
  std::int32_t pid_ = 0;
};

}  // namespace crosstalk::in_target
