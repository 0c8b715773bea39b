// SPDX-License-Identifier: Apache-2.0
// Measures the cost of communication for a workload's threads, by their own clock. A workload forces its number of
// communications, but not their cost: a line is near if both threads run on one processor, and far if they do not.
#pragma once

#include <x86intrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace workload {

enum class Sharing : std::uint8_t { same_word, own_words };

/// Times stretches of a thread's code whose accesses, nearly all, communicate from one other thread. Each thread has a
/// clock of its own, on its stack, so that timing shares nothing. Timing takes some 20 ns of a stretch.
class CostClock {
 public:
  static constexpr std::size_t max_threads = 65;  // of the truth, main among them

  void begin() { begin_ = now(); }
  /// Since begin(), the thread has communicated from thread `producer` of the truth.
  void end(int producer, Sharing sharing) {
    const auto ticks = static_cast<double>(now() - begin_);
    // A thread that loses the processor is away for milliseconds, hundreds of times a stretch's time: left out.
    if (known_ > 0 && ticks > absent * typical_) {
      typical_ += typical_ / memory;  // or else what is typical has changed
      return;
    }
    known_ += known_ < memory ? 1 : 0;
    typical_ += (ticks - typical_) / known_;
    (sharing == Sharing::same_word ? same_ : own_).at(static_cast<std::size_t>(producer)) += ticks;
  }

  /// Returns the ticks of the time stamp in all stretches that communicated from `producer`.
  [[nodiscard]] double ticks(int producer, Sharing sharing) const {
    return (sharing == Sharing::same_word ? same_ : own_).at(static_cast<std::size_t>(producer));
  }

  /// Returns the processor's time stamp, after all earlier work and before any later.
  static std::uint64_t now() {
    _mm_lfence();
    const std::uint64_t stamp = __rdtsc();
    _mm_lfence();
    return stamp;
  }

 private:
  static constexpr double absent = 32, memory = 64;
  std::array<double, max_threads> same_{}, own_{};
  double typical_ = 0, known_ = 0;
  std::uint64_t begin_ = 0;
};

}  // namespace workload
