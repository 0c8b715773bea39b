// SPDX-License-Identifier: Apache-2.0
// The hardware counters of all watched threads: opened when a thread is found or resumes, closed when it rests or is
// dropped.
#pragma once

#include <cstdint>

#include "collectors/observer/counter_reader.h"
#include "collectors/observer/targets.h"
#include "collectors/watch_policy/budget.h"

namespace crosstalk::observer {

/// Not thread-safe.
class Counters {
 public:
  explicit Counters(CounterGroups groups) : groups_(std::move(groups)) {}
  /// Opens missing counters, takes their readings, and keeps the pace. Charges the readings to the threads.
  void tend(const Targets& targets, watch_policy::Budget& budget, std::uint64_t now_ns);
  /// Takes the thread's last readings, and closes its counters.
  void close(WatchedThread& thread, std::uint64_t cost_ns);
  [[nodiscard]] const CounterTally& tally() const { return tally_; }

 private:
  void open(WatchedThread& thread);
  [[nodiscard]] std::uint64_t drain(WatchedThread& thread, std::uint64_t cost_ns);
  [[nodiscard]] std::uint64_t interval_ns(std::uint64_t period_ns) const;

  CounterGroups groups_;
  CounterTally tally_;
  std::uint32_t lives_ = 0;
};

}  // namespace crosstalk::observer
