// SPDX-License-Identifier: Apache-2.0
// Decides which threads can be armed: how many debug registers the kernel grants to each, and if a thread's events stay
// open between watches (watch_events.h). Signal-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/watch/watch_slot.h"
#include "collectors/watch_policy/words.h"

namespace crosstalk::in_target {

class Admission {
 public:
  /// `words` debug registers, 0..4.
  void start(std::uint32_t words);
  /// The slots that any thread can watch in: as many as the kernel has granted registers for.
  [[nodiscard]] watch_policy::SlotPlan plan() const { return plan_.load(std::memory_order_relaxed); }
  /// The slots that a thread can watch in, which may have got fewer registers than others.
  [[nodiscard]] watch_policy::SlotPlan plan_for(const ThreadState& self) const;

  /// Prepares the calling thread for being armed, and keeps its events of free `slots` open if
  /// ThreadState::keeps_events. Costs nothing while nothing changes.
  void attend(ThreadState& self, std::span<WatchSlot> slots);
  /// Prepares the calling thread at once, if another thread got all registers.
  void expect(ThreadState& self);

 private:
  static constexpr std::uint32_t words_unknown = UINT32_MAX;

  void admit(ThreadState& self);
  [[nodiscard]] bool grants_all() const;
  [[nodiscard]] long open_events(ThreadState& self) const;

  std::uint32_t words_configured_ = 0;
  std::atomic<watch_policy::SlotPlan> plan_;                  // smaller if the kernel does not grant all registers
  std::atomic<std::uint32_t> words_granted_ = words_unknown;  // the most that the kernel has let a thread have
};

/// From now on a thread can be armed for so many words, in this process and by others.
void set_watch_events(ThreadState& thread, std::uint32_t words);
/// A thread is watched no more: it ends, or may not be armed.
void end_watching(ThreadState& thread);
/// True if a thread's events are open during watches only.
[[nodiscard]] bool has_closed_events();
/// Closes the events that threads keep open, except those of watches that are still open, and idle alarms.
void close_kept_events(std::span<WatchSlot> slots);
/// Closes the events of a thread. They are opened again when they are needed, with other descriptor numbers.
void renew_events(ThreadState& thread);
/// Forbids other processes to arm our threads, until readmit_threads().
void withdraw_threads();
void readmit_threads();

}  // namespace crosstalk::in_target
