// SPDX-License-Identifier: Apache-2.0
// When a thread is first sampled, and by which kind of clock where threads come and go. The samples of a thread come a
// period apart, and its first one anywhere within the first period: so a thread that lives for a part of a period is
// sampled with that probability, and if it is, its sample stands for a whole period. Summed over threads, samples then
// stand for all the CPU time, however short the threads are.
#pragma once

#include <atomic>
#include <cstdint>

namespace crosstalk::watch_policy {

/// The first expiry, > 0, of a clock that is looked at once in `tick_ns`, as POSIX CPU timers are; 1: it expires as
/// soon as it likes. Its ticks come at any time of the thread's life, so the first one behind a multiple of the tick,
/// drawn evenly, is anywhere within the period.
[[nodiscard]] std::uint64_t first_tick(std::uint64_t period_ns, std::uint64_t tick_ns, std::uint64_t& random);
/// Of a clock that is exact.
[[nodiscard]] std::uint64_t first_expiry(std::uint64_t period_ns, std::uint64_t& random);

/// How long the threads of a process live, in CPU time: the mean of those that have ended lately. Signal-safe.
class ThreadLives {
 public:
  /// `switches`: its context switches.
  void ended(std::uint64_t cpu_ns, std::uint64_t switches);
  void clear();
  /// 0: none has ended yet.
  [[nodiscard]] std::uint64_t mean_ns() const { return mean_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] double mean_switches() const;
  /// Do threads come and go so fast that a clock which begins coarse would stay so?
  [[nodiscard]] bool brief(std::uint64_t tick_ns) const;

 private:
  std::atomic<std::uint64_t> mean_ns_{0};
  std::atomic<std::uint64_t> mean_switches_{0};  // in 64ths
};

/// What a fine clock costs a thread, nanoseconds.
struct FineClockCost {
  std::uint64_t open_ns = 0;    // to have one and to part with it, and of a life's context switches
  std::uint64_t sample_ns = 0;  // of each sample
};

/// The period, `wanted_ns` or longer, at which threads that live for `life_ns` can have a fine clock each for the part
/// `allowed` of their CPU time; 0: they can not, or not at a shorter period than a tick.
[[nodiscard]] std::uint64_t affordable_period(const FineClockCost& cost, std::uint64_t life_ns, std::uint64_t wanted_ns,
                                              std::uint64_t tick_ns, double allowed);

}  // namespace crosstalk::watch_policy
