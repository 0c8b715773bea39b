// SPDX-License-Identifier: Apache-2.0
// Decides when watching pauses. Closed events still cost 0.1 to 0.2 us a context switch, in each thread that had one,
// until a second after the last event on the machine is closed. A pause saves this cost in threads that switch hundreds
// of thousands of times a second, where it exceeds the whole budget. They are watched for a while and then rest until
// that cost is earned. All processes of a recording watch and rest together: as long as one of them has an event open,
// the others' rest saves nothing, and costs them observations.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace crosstalk::watch_policy {

/// The cost of observing so far, and its limit. Nanoseconds of CPU time.
struct Account {
  double earned = 0;  // the budget's fraction of the CPU time used
  double spent = 0;   // on anything but the following
  double lost = 0;    // on what closed events leave behind
};

/// The account of all processes of a recording, in memory that they share; all zero at first. Signal-safe.
class CommonAccount {
 public:
  void earn(double ns) { add(earned_, ns); }
  void spend(std::uint64_t ns) { spent_.fetch_add(ns, std::memory_order_relaxed); }
  void lose(std::uint64_t ns) { lost_.fetch_add(ns, std::memory_order_relaxed); }
  [[nodiscard]] Account read() const { return {amount(earned_), amount(spent_), amount(lost_)}; }

 private:
  using Amount = std::atomic<std::uint64_t>;
  static void add(Amount& amount, double ns) {
    amount.fetch_add(static_cast<std::uint64_t>(ns), std::memory_order_relaxed);
  }
  static double amount(const Amount& amount) { return static_cast<double>(amount.load(std::memory_order_relaxed)); }

  Amount earned_, spent_, lost_;
};

/// The rests of all processes of a recording, in memory that they share; all zero at first. Signal-safe, from any
/// thread.
class Rests {
 public:
  /// True if watching has paused at `now_ns` (CLOCK_MONOTONIC). Call it often: the answer changes here. `account`: the
  /// recording's. `has_clocks`: the calling process has events that stay open in a rest, so that none would save
  /// anything.
  bool resting(std::uint64_t now_ns, const Account& account, bool has_clocks) {
    if (has_clocks) {
      clocks_ns_.store(now_ns, std::memory_order_relaxed);
    }
    const bool may_rest = !has_clocks && !had_clocks(now_ns);
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
  /// Returns the last answer of resting().
  [[nodiscard]] bool resting() const { return (state_.load(std::memory_order_relaxed) & rest_bit) != 0; }
  /// True if watching ever paused. Then no thread should keep its events open between two watches.
  [[nodiscard]] bool ever() const { return rested_.load(std::memory_order_relaxed); }

  /// Shorter than this, the second in which the cost goes on would be most of it.
  static constexpr std::uint64_t least_watching_ns = 1'000'000'000;
  /// The first time, when nothing is earned yet: a program that ends after a few seconds should not exceed its budget
  /// by much, either.
  static constexpr std::uint64_t first_watching_ns = 500'000'000;
  /// If closed events cost less than this part of the budget, nobody rests: watching has three quarters of it at most
  /// (Budget::affords), and both together exceed it by a quarter. A rest is time unseen.
  static constexpr double bearable_share = 0.5;
  static constexpr double most = 1.1;  // times the budget, with rests

 private:
  using State = std::uint64_t;  // since when, and in the lowest bit whether it rests
  static constexpr State untouched = 0;
  static constexpr State rest_bit = 1;

  [[nodiscard]] bool had_clocks(std::uint64_t now_ns) const {
    constexpr std::uint64_t lately_ns = 1'000'000'000;
    const std::uint64_t seen_ns = clocks_ns_.load(std::memory_order_relaxed);
    return seen_ns != 0 && now_ns < seen_ns + lately_ns;
  }
  static State watching_since(std::uint64_t now_ns) { return std::max<State>(now_ns & ~rest_bit, 2); }
  [[nodiscard]] bool has_watched(State since, std::uint64_t now_ns) const {
    return now_ns >= since + (ever() ? least_watching_ns : first_watching_ns);
  }
  static bool owes(const Account& account) { return account.spent + account.lost > account.earned * most; }
  static bool is_worth_it(const Account& account) {
    return owes(account) && account.lost > account.earned * bearable_share;
  }

  std::atomic<State> state_;
  std::atomic<std::uint64_t> clocks_ns_;  // when a process last had clocks that stay open; 0: never
  std::atomic<bool> rested_;
};

/// The common budget of a recording's processes; all zero at first.
struct CommonBudget {
  CommonAccount account;
  Rests rests;
};

}  // namespace crosstalk::watch_policy
