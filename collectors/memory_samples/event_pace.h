// SPDX-License-Identifier: Apache-2.0
// How often an event samples, and how much a sample stands for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/memory_samples/sampled_event.h"

namespace crosstalk::collectors {

struct PerfSample;

/// Returns a random factor for a period, evenly from a quarter less to a quarter more.
inline constexpr double period_spread = 0.25;
[[nodiscard]] double period_by_chance(std::uint64_t& random);

/// True if a thread lacks a counter: `never_counted` of its `events` never had one. With events of several kinds of
/// cores, those of other kinds never count if the thread stays on one kind: then all have to lack it.
[[nodiscard]] constexpr bool lacks_counter(std::size_t never_counted, std::size_t events, bool one_unit) {
  return never_counted != 0 && (one_unit || never_counted == events);
}

/// Computes a sample's weight, and the period after it. Pure: takes an event's counts and does nothing else.
class EventPace {
 public:
  /// `period`: to begin with. `hurry`: so many samples in one period's time are a flood.
  EventPace(const SampledEvent& event, std::uint64_t period, std::uint32_t hurry = 32)
      : event_(event), period_(period), hurry_(hurry) {}
  EventPace() = default;  // all zero bytes: it takes none in a library's file

  /// Returns what the sample stands for: the count since the sample before, including lost samples. Scales it up if
  /// `shared_counters` and the event had its counter for only a part of the time.
  [[nodiscard]] std::uint64_t weigh(const PerfSample& sample, bool shared_counters);
  /// Updates counting_part() from times read without a sample, because an event that has no counter takes no sample
  /// that could tell. `enabled_ns`, `running_ns`: of the event, so far.
  void look(std::uint64_t enabled_ns, std::uint64_t running_ns, bool shared_counters);
  /// True if at the latest look the event was enabled for long enough to know, and never counted.
  [[nodiscard]] bool never_counted() const { return never_counted_; }
  /// True if a new period is due: at once if samples come much too fast.
  [[nodiscard]] bool due(std::uint64_t now_ns) const { return now_ns >= due_ns_ || taken_ >= hurry_; }
  /// Returns the period until the next call, drawn around the one that gives a sample in `wanted_ns` of running time.
  /// `counted`, `running_ns`: of the event, so far.
  [[nodiscard]] std::uint64_t next_period(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t counted,
                                          std::uint64_t running_ns, std::uint64_t& random);
  /// Returns the part of its enabled time in which the event counted, at its latest sample or look.
  [[nodiscard]] double counting_part() const { return 1 - missing_part_; }
  [[nodiscard]] bool sampled() const { return taken_ != 0; }
  [[nodiscard]] std::uint64_t counted() const { return count_; }
  [[nodiscard]] std::uint64_t running_ns() const { return running_ns_; }
  [[nodiscard]] const SampledEvent& event() const { return event_; }
  [[nodiscard]] std::uint64_t period() const { return period_; }

 private:
  [[nodiscard]] std::uint64_t allowed(double period) const;

  SampledEvent event_{profile::SourceKind::clock, profile::WeightUnit::ns, Accesses::loads};
  std::uint64_t period_ = 0;                                   // around which it is drawn
  std::uint64_t count_ = 0, enabled_ns_ = 0, running_ns_ = 0;  // at the latest sample
  std::uint64_t paced_count_ = 0, paced_running_ns_ = 0;       // when the period was drawn
  std::uint64_t due_ns_ = 0, pause_ns_ = 0;                    // the latter 0: not paused yet
  double missing_part_ = 0;
  std::uint32_t taken_ = 0;  // samples since the period was drawn
  std::uint32_t hurry_ = 0;
  bool never_counted_ = false;
};

}  // namespace crosstalk::collectors
