// SPDX-License-Identifier: Apache-2.0
// A place for one watch of this process: what is watched, in which events, and how far the watch has come.
//
// A slot changes under its lock. A thread that fails to get it after some tries leaves the change out. Signal-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/in_target/processes/cross_process_state.h"
#include "collectors/watch_policy/runs.h"
#include "collectors/watch_policy/words.h"
#include "profile/records.h"

namespace crosstalk::in_target {

struct WatchSlot {
  explicit constexpr WatchSlot(std::uint32_t number) : index(number) {}

  const std::uint32_t index;  // of the slot; the common watch of that number is kept in it, too
  std::atomic<std::uint32_t> lock;
  std::atomic<std::uint32_t> watch;  // id; 0: idle
  std::atomic<std::uint64_t> cost_ns;
  // The time that others lost while their watchpoints were moved; added to cost_ns at the end.
  std::atomic<std::uint64_t> interrupted_ns;
  std::atomic<bool> suspected;
  watch_policy::WatchProgress own;  // of a watch of this process alone
  SharedWatch* shared = nullptr;    // of a common watch; else null
  SharedLine identity;
  std::uint64_t line = 0, opened_ns = 0;
  watch_policy::WordChoice choice;
  profile::LineState state;  // read before threads are armed
  bool has_state = false;

  bool try_lock();
  void unlock() { lock.store(0, std::memory_order_release); }
  /// After fork: forgets the watch without touching any event.
  void forget();

  [[nodiscard]] watch_policy::WatchProgress& progress() { return shared != nullptr ? shared->progress : own; }
  [[nodiscard]] const watch_policy::WatchProgress& progress() const {
    return shared != nullptr ? shared->progress : own;
  }
  /// A thread's events [first_event(), first_event() + words_per_slot) serve this slot.
  [[nodiscard]] std::uint32_t first_event() const { return index * words_per_slot; }
};

/// Other threads that could be armed for a watch, and those that were.
struct ArmedThreads {
  std::uint32_t others = 0, armed = 0;
};

}  // namespace crosstalk::in_target
