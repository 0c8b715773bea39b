// SPDX-License-Identifier: Apache-2.0
// Decides when a thread is first sampled, and which kind of clock short-lived threads have. The samples of a thread
// come a period apart, and its first one anywhere within the first period. So a thread that lives for a part of a
// period is sampled with that probability, and if it is, its sample stands for a whole period. Summed over threads,
// samples then stand for all the CPU time, however short the threads are.
#pragma once

#include <atomic>
#include <cstdint>

namespace crosstalk::watch_policy {

/// Returns the first expiry, > 0, of a clock that is checked once in `tick_ns`, as POSIX CPU timers are; 1: it expires
/// as soon as possible. Its ticks come at any time of the thread's life, so the first one behind a random multiple of
/// the tick is anywhere within the period.
[[nodiscard]] std::uint64_t first_tick(std::uint64_t period_ns, std::uint64_t tick_ns, std::uint64_t& random);
/// Returns the first expiry of an exact clock: no sooner than it may expire, so the time before that has no sample.
[[nodiscard]] std::uint64_t first_expiry(std::uint64_t period_ns, std::uint64_t& random);

/// An exact clock begins anew by itself in the kernel until the thread is in user mode and can take a signal. A time
/// shorter than such an interrupt would keep the thread in the kernel: for a second, in a guest whose interrupts take
/// 10 us.
constexpr std::uint64_t shortest_expiry_ns = 30'000;

/// The mean CPU time of the process's threads that have ended lately. Signal-safe.
class ThreadLives {
 public:
  /// `switches`: its context switches.
  void ended(std::uint64_t cpu_ns, std::uint64_t switches);
  void clear();
  /// 0: none has ended yet.
  [[nodiscard]] std::uint64_t mean_ns() const { return mean_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] double mean_switches() const;
  /// True if threads come and go so fast that a clock which begins coarse would stay so.
  [[nodiscard]] bool brief(std::uint64_t tick_ns) const;

 private:
  std::atomic<std::uint64_t> mean_ns_{0};
  std::atomic<std::uint64_t> mean_switches_{0};  // in 64ths
};

/// The cost of a fine clock to a thread, nanoseconds.
struct FineClockCost {
  std::uint64_t open_ns = 0;    // to have one and to part with it, and of a life's context switches
  std::uint64_t sample_ns = 0;  // of each sample
};

/// The period, `wanted_ns` or longer, at which threads that live for `life_ns` can have a fine clock each for the part
/// `allowed` of their CPU time; 0: they cannot, or not at a shorter period than a tick.
[[nodiscard]] std::uint64_t affordable_period(const FineClockCost& cost, std::uint64_t life_ns, std::uint64_t wanted_ns,
                                              std::uint64_t tick_ns, double allowed);

/// Brief threads are begun, woken and preempted at ticks, so the ticks of a coarse clock fall at the same points of
/// their lives: two loops of a round of 50 us, 0.4 and 0.6 of it, were seen as 0.14 and 0.86. If not all of them can
/// have a fine clock, a random one in so many has it, and its samples stand for the others as well.
struct BriefClock {
  std::uint64_t period_ns = 0;  // of the fine clock; 0: it cannot be had, not even for one in many
  std::uint64_t one_in = 1;     // threads
};

/// Returns the clock at affordable_period(), or if that gives none, a clock for one thread in some. `wanted_ns`: CPU
/// time of all of them between two samples, at least.
[[nodiscard]] BriefClock brief_clock(const FineClockCost& cost, std::uint64_t life_ns, std::uint64_t wanted_ns,
                                     std::uint64_t tick_ns, double allowed);

[[nodiscard]] bool is_drawn(std::uint64_t one_in, std::uint64_t& random);

/// CPU time of a drawn thread from which on it stands for itself alone, and all have a clock: few live that long.
[[nodiscard]] std::uint64_t alone_from(std::uint64_t life_ns, std::uint64_t tick_ns);

/// Returns the CPU time that a drawn thread's sample at `now_ns` stands for, after one at `last_ns`.
[[nodiscard]] std::uint64_t stands_for(std::uint64_t last_ns, std::uint64_t now_ns, std::uint64_t one_in,
                                       std::uint64_t alone_from_ns);

}  // namespace crosstalk::watch_policy
