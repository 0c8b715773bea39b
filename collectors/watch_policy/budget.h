// SPDX-License-Identifier: Apache-2.0
// The overhead budget of a process: the cost of observing, and its limit.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "collectors/watch_policy/rests.h"

namespace crosstalk::watch_policy {

/// Returns the running mean of a watch's cost after another one has cost `cost_ns`.
[[nodiscard]] constexpr std::uint64_t mean_with(std::uint64_t mean_ns, std::uint64_t cost_ns) {
  constexpr std::uint64_t memory = 8;  // watches
  return mean_ns - mean_ns / memory + cost_ns / memory;
}

/// All amounts are nanoseconds of thread CPU time, summed over the threads of a process. Signal-safe.
class Budget {
 public:
  /// `common`: the recording's, to whose account this process's amounts are added, too.
  void start(double fraction, CommonBudget* common = nullptr) {
    fraction_ = fraction;
    common_ = common;
  }
  /// A thread has run for `cpu_ns` more.
  void earn(std::uint64_t cpu_ns) {
    cpu_.fetch_add(cpu_ns, std::memory_order_relaxed);
    if (common_ != nullptr) {
      common_->account.earn(static_cast<double>(cpu_ns) * fraction_);
    }
  }
  /// Adds `ns` to the cost of observing.
  void spend(std::uint64_t ns) {
    spent_.fetch_add(ns, std::memory_order_relaxed);
    if (common_ != nullptr) {
      common_->account.spend(ns);
    }
  }

  /// Adds `ns` to the cost of closed events' aftermath, which not beginning a watch does not save at once.
  void lose(std::uint64_t ns) {
    lost_.fetch_add(ns, std::memory_order_relaxed);
    if (common_ != nullptr) {
      common_->account.lose(ns);
    }
  }

  /// Notes the part of the spent time that went into watching unknown lines.
  void explore(std::uint64_t ns) { explored_.fetch_add(ns, std::memory_order_relaxed); }
  /// Notes the result of watching an unknown line.
  void explored(bool exchanged) {
    const std::uint32_t before = yield_.load(std::memory_order_relaxed);
    yield_.store(before - before / yield_memory + (exchanged ? yield_one / yield_memory : 0),
                 std::memory_order_relaxed);
  }

  /// True if an action that will cost about `cost_ns` may start. Exploring has a share of the budget of its own: known
  /// exchanged lines must not use up the search for others, nor the other way round. The share grows with what
  /// exploring finds: a program whose threads share nothing is left in peace, one that exchanges more lines than can
  /// become known is looked at harder. A grant before anything was earned lets short programs be seen too. The
  /// aftermath of closed events takes no more than a quarter: rests save the remainder (Rests).
  [[nodiscard]] bool affords(std::uint64_t cost_ns, bool exploring) const {
    const double all = static_cast<double>(cpu_.load(std::memory_order_relaxed)) * fraction_;
    const double earned =
        all - std::min(static_cast<double>(lost_.load(std::memory_order_relaxed)), all * lost_share) + grant_ns;
    const auto after = static_cast<double>(spent_.load(std::memory_order_relaxed) + cost_ns);
    const auto explored_after = static_cast<double>(explored_.load(std::memory_order_relaxed) + cost_ns);
    return after <= earned && (!exploring || explored_after <= earned * exploring_share());
  }
  /// Notes the part of the spent time that went into lookaheads: interpreting what a thread executes after its sample.
  void look_ahead(std::uint64_t ns) { lookahead_.fetch_add(ns, std::memory_order_relaxed); }
  /// True if a lookahead may start that will cost about `cost_ns`. Lookaheads have a small share of the budget, so that
  /// they take little from the samples that they explain, and nothing from watches that find something.
  [[nodiscard]] bool affords_lookahead(std::uint64_t cost_ns) const {
    const double earned = static_cast<double>(cpu_.load(std::memory_order_relaxed)) * fraction_ * lookahead_share;
    const auto after = static_cast<double>(lookahead_.load(std::memory_order_relaxed) + cost_ns);
    return after <= earned + lookahead_grant_ns && affords(cost_ns, false);
  }
  [[nodiscard]] double spent_fraction() const {
    const auto cpu = static_cast<double>(cpu_.load(std::memory_order_relaxed));
    const std::uint64_t all = spent_.load(std::memory_order_relaxed) + lost_.load(std::memory_order_relaxed);
    return cpu > 0 ? static_cast<double>(all) / cpu : 0;
  }
  void clear() {
    cpu_.store(0, std::memory_order_relaxed);
    spent_.store(0, std::memory_order_relaxed);
    lost_.store(0, std::memory_order_relaxed);
    explored_.store(0, std::memory_order_relaxed);
    lookahead_.store(0, std::memory_order_relaxed);
    yield_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr double lookahead_share = 0.1;
  static constexpr double lookahead_grant_ns = 200'000;
  static constexpr double lost_share = 0.25;
  static constexpr double grant_ns = 1'000'000;
  static constexpr std::uint32_t yield_one = 1U << 20U;
  static constexpr std::uint32_t yield_memory = 16;  // watches

  [[nodiscard]] double exploring_share() const {
    constexpr double least = 0.25;
    constexpr double most = 0.75;
    constexpr double growth = 2;  // a yield of one in four earns the most
    return std::min(most, least + growth * yield_.load(std::memory_order_relaxed) / yield_one);
  }

  double fraction_ = 0;
  CommonBudget* common_ = nullptr;
  std::atomic<std::uint64_t> cpu_;
  std::atomic<std::uint64_t> spent_;
  std::atomic<std::uint64_t> lost_;  // beside the spent time
  std::atomic<std::uint64_t> explored_;
  std::atomic<std::uint64_t> lookahead_;
  std::atomic<std::uint32_t> yield_;  // share of explored lines that were exchanged, of yield_one
};

}  // namespace crosstalk::watch_policy
