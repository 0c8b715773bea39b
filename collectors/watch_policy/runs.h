// SPDX-License-Identifier: Apache-2.0
// The run state machine: decides in which mode each thread is armed while a line is watched, and when the watch ends.
//
// A watch follows the *runs* of a line's owners. All threads but the current runner are armed for reads and writes; the
// runner is armed for the accesses of its run that are still of interest:
//
//     read_write --first access--> write_only --first store--> off
//        ^                                                      |
//        +------------- another thread's access ---------------+
//
// A thread that hammers on its own line costs two traps a run and word. The trap sequence is the sequence of owners,
// each with its first access and its first store: the definition of a communication asks for no more.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/registers.h"
#include "collectors/watch_policy/sampled_access.h"
#include "profile/records.h"

namespace crosstalk::watch_policy {

/// The accesses that a thread's watchpoint on one word reports.
enum class WatchMode : std::uint8_t { off = 0, read_write = 1, write_only = 2 };

/// Returns the mode of the thread whose sample begins a watch, on the `word`th watched word.
[[nodiscard]] WatchMode first_mode(const SampledAccess& access, std::uint32_t word);
/// Returns the mode of the thread that has just trapped in `mode`, on the same word.
[[nodiscard]] WatchMode mode_after_trap(WatchMode mode);

/// The changes by a trap beyond the watchpoint that fired.
struct Turn {
  std::uint32_t rearm = 0;                    // this thread, whose run is over, is armed for reads and writes; 0: none
  std::optional<profile::CloseReason> close;  // the watch is over
};

/// The progress of a watch. Traps of several threads may advance it at once, also from several processes. A thread is
/// known by a number > 0. All-zero until it begins.
class WatchProgress {
 public:
  void begin(std::uint32_t number, const SampledAccess& access, std::uint64_t deadline_ns);
  /// Counts a trap; returns its number among those of the watch, from 0.
  std::uint32_t count_trap() { return traps_.fetch_add(1, std::memory_order_relaxed); }
  /// A trap was a store.
  void saw_store() { stored_.store(1, std::memory_order_relaxed); }
  /// The trap that count_trap() has numbered `sequence` is thread `number`'s: from now on it has the line.
  Turn advance(std::uint32_t number, std::uint32_t sequence, std::uint64_t now_ns);

  [[nodiscard]] bool expired(std::uint64_t now_ns) const { return now_ns >= deadline_ns(); }
  [[nodiscard]] std::uint64_t deadline_ns() const { return deadline_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t traps() const { return traps_.load(std::memory_order_relaxed); }
  /// The thread that has the line.
  [[nodiscard]] std::uint32_t runner() const { return runner_.load(std::memory_order_acquire); }
  /// True if the line has been exchanged. Threads that only read it do not exchange it.
  [[nodiscard]] bool exchanged() const {
    return stored_.load(std::memory_order_relaxed) != 0 && runs_.load(std::memory_order_relaxed) > 0;
  }

 private:
  std::atomic<std::uint32_t> traps_;
  std::atomic<std::uint32_t> runner_;
  std::atomic<std::uint32_t> runs_;
  std::atomic<std::uint32_t> stored_;  // 1: by anybody
  std::atomic<std::uint64_t> deadline_ns_;
};

}  // namespace crosstalk::watch_policy
