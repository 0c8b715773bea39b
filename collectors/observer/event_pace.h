// SPDX-License-Identifier: Apache-2.0
// How often an event samples, and how much a sample stands for.
#pragma once

#include <cstdint>

#include "collectors/observer/perf_records.h"
#include "collectors/pmu/memory_events.h"

namespace crosstalk::observer {

/// What a period is multiplied by, so that it is drawn evenly from a quarter less to a quarter more.
inline constexpr double period_spread = 0.25;
[[nodiscard]] double period_by_chance(std::uint64_t& random);

/// How much a sample stands for, and the period after it. Pure: an event's counts go in, what to do comes out.
class EventPace {
 public:
  /// `period`: to begin with.
  EventPace(const collectors::MemoryEvent& event, std::uint64_t period) : event_(&event), period_(period) {}

  /// What the sample stands for: what was counted since the one before, also by samples that were lost. Where others
  /// had the counter for a part of the time, and `shared_counters` says that this is why, the more.
  [[nodiscard]] std::uint64_t weigh(const PerfSample& sample, bool shared_counters);
  /// Is a new period due? At once where samples come much faster than they are to.
  [[nodiscard]] bool due(std::uint64_t now_ns) const { return now_ns >= due_ns_ || taken_ >= hurry_samples; }
  /// The period until the next call, drawn around what gives a sample in `wanted_ns` of running time. `counted`,
  /// `running_ns`: of the event, so far.
  [[nodiscard]] std::uint64_t next_period(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t counted,
                                          std::uint64_t running_ns, std::uint64_t& random);
  /// Of the time that the event was to count, the part in which it did, at its latest sample.
  [[nodiscard]] double counting_part() const { return part_; }
  [[nodiscard]] bool sampled() const { return taken_ != 0; }
  [[nodiscard]] std::uint64_t counted() const { return count_; }
  [[nodiscard]] std::uint64_t running_ns() const { return running_ns_; }
  [[nodiscard]] const collectors::MemoryEvent& event() const { return *event_; }
  [[nodiscard]] std::uint64_t period() const { return period_; }

 private:
  static constexpr std::uint32_t hurry_samples = 32;
  [[nodiscard]] std::uint64_t allowed(double period) const;

  const collectors::MemoryEvent* event_;
  std::uint64_t period_;                                       // around which it is drawn
  std::uint64_t count_ = 0, enabled_ns_ = 0, running_ns_ = 0;  // at the latest sample
  std::uint64_t paced_count_ = 0, paced_running_ns_ = 0;       // when the period was drawn
  std::uint64_t due_ns_ = 0, pause_ns_ = 10'000'000;
  double part_ = 1;
  std::uint32_t taken_ = 0;  // samples since the period was drawn
};

}  // namespace crosstalk::observer
