// SPDX-License-Identifier: Apache-2.0
// The watches of this process, one in each slot: the end of each, and its cost. Signal-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/watch/watch_slot.h"
#include "profile/records.h"

namespace crosstalk::in_target {

class OpenWatches {
 public:
  void start();
  /// Forgets all watches without touching any event (after fork).
  void forget();
  [[nodiscard]] std::span<WatchSlot> slots() { return slot_; }
  [[nodiscard]] std::span<const WatchSlot> slots() const { return slot_; }

  /// Closes the watch of a slot whose lock is held. If processes keep a watch together, the one that ends it records
  /// the end.
  void close(WatchSlot& slot, ThreadState& self, profile::CloseReason reason);
  /// Closes watch `id` of a slot unless another thread has closed it already.
  void close_if_open(WatchSlot& slot, ThreadState& self, std::uint32_t id, profile::CloseReason reason);
  /// Closes watches that are past their deadlines (the horizon, a brief one, or one that a first visitor extended).
  /// True if there was one.
  bool expire(ThreadState& self, std::uint64_t now_ns);
  void close_all(ThreadState& self, profile::CloseReason reason);

  /// Returns the running mean of a watch's cost, nanoseconds.
  [[nodiscard]] std::uint64_t mean_cost_ns() const { return mean_cost_ns_.load(std::memory_order_relaxed); }
  /// Adds to the cost of the watch that `event` belongs to.
  void charge(std::uint32_t event, std::uint64_t ns);
  /// True if `event` belongs to a watch of a line that the board suspected.
  [[nodiscard]] bool suspects(std::uint32_t event) const {
    return slot_[event / words_per_slot].suspected.load(std::memory_order_relaxed);
  }

 private:
  static_assert(watch_slots == 2);
  WatchSlot slot_[watch_slots] = {WatchSlot(0), WatchSlot(1)};
  std::atomic<std::uint64_t> mean_cost_ns_;
};

}  // namespace crosstalk::in_target
