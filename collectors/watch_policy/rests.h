// SPDX-License-Identifier: Apache-2.0
// When a process's watching pauses. What closed events leave behind (0.1 to 0.2 us a context switch, in each thread
// that had one) ends a second after the last of them is closed, so it can be saved: by threads that switch hundreds of
// thousands of times a second, whom it costs more than the whole budget. They are watched for a while and then rest
// until what that has cost is earned.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace crosstalk::watch_policy {

/// What observing has cost a process so far, and may. Nanoseconds of CPU time.
struct Account {
  double earned = 0;  // the budget's fraction of the CPU time used
  double spent = 0;   // on anything but the following
  double lost = 0;    // on what closed events leave behind
};

/// Signal-safe, from any thread.
class Rests {
 public:
  /// Has watching paused at `now_ns` (CLOCK_MONOTONIC)? To be asked often: the answer changes here. `may_rest`: closing
  /// the events of watchpoints would close all there are.
  bool resting(std::uint64_t now_ns, const Account& account, bool may_rest) {
    State before = state_.load(std::memory_order_relaxed);
    if (before == untouched) {
      state_.compare_exchange_strong(before, watching_since(now_ns), std::memory_order_relaxed);
      before = state_.load(std::memory_order_relaxed);
    }
    const bool rests = (before & rest_bit) != 0;
    const bool wanted = may_rest && (rests ? owes(account) : has_watched(before, now_ns) && is_worth_it(account));
    if (rests != wanted) {
      state_.compare_exchange_strong(before, wanted ? now_ns | rest_bit : watching_since(now_ns),
                                     std::memory_order_relaxed);
      rested_.store(true, std::memory_order_relaxed);
    }
    return wanted;
  }
  /// As resting() said last.
  [[nodiscard]] bool resting() const { return (state_.load(std::memory_order_relaxed) & rest_bit) != 0; }
  /// Did it ever? Then no thread should keep its events open between two watches.
  [[nodiscard]] bool ever() const { return rested_.load(std::memory_order_relaxed); }
  void clear() {
    state_.store(untouched, std::memory_order_relaxed);
    rested_.store(false, std::memory_order_relaxed);
  }

  /// Shorter than this, the second in which the cost goes on would be most of it.
  static constexpr std::uint64_t least_watching_ns = 1'000'000'000;
  /// The first time, when nothing is earned yet: a program that ends after a few seconds should not exceed its budget
  /// by much, either.
  static constexpr std::uint64_t first_watching_ns = 500'000'000;
  /// Where closed events cost less than this part of the budget, nobody rests: watching has three quarters of it at
  /// most (Budget::affords), and both together exceed it by a quarter. A rest is time unseen.
  static constexpr double bearable_share = 0.5;
  static constexpr double most = 1.1;  // times the budget, with rests

 private:
  using State = std::uint64_t;  // since when, and in the lowest bit whether it rests
  static constexpr State untouched = 0;
  static constexpr State rest_bit = 1;

  static State watching_since(std::uint64_t now_ns) { return std::max<State>(now_ns & ~rest_bit, 2); }
  [[nodiscard]] bool has_watched(State since, std::uint64_t now_ns) const {
    return now_ns >= since + (ever() ? least_watching_ns : first_watching_ns);
  }
  static bool owes(const Account& account) { return account.spent + account.lost > account.earned * most; }
  static bool is_worth_it(const Account& account) {
    return owes(account) && account.lost > account.earned * bearable_share;
  }

  std::atomic<State> state_;
  std::atomic<bool> rested_;
};

}  // namespace crosstalk::watch_policy
