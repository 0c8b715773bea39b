// SPDX-License-Identifier: Apache-2.0
// How often an event samples, and how much a sample stands for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/memory_samples/sampled_event.h"

namespace crosstalk::collectors {

struct PerfSample;

/// What a period is multiplied by, so that it is drawn evenly from a quarter less to a quarter more.
inline constexpr double period_spread = 0.25;
[[nodiscard]] double period_by_chance(std::uint64_t& random);

/// Whether a thread with so many events lacks a counter, of which so many never had one. Of several kinds of cores'
/// events those of the others never count where the thread stays on one kind: then all have to lack it.
[[nodiscard]] constexpr bool lacks_counter(std::size_t never_counted, std::size_t events, bool one_unit) {
  return never_counted != 0 && (one_unit || never_counted == events);
}

/// How much a sample stands for, and the period after it. Pure: an event's counts go in, what to do comes out.
class EventPace {
 public:
  /// `period`: to begin with. `hurry`: so many samples in one period's time are a flood.
  EventPace(const SampledEvent& event, std::uint64_t period, std::uint32_t hurry = 32)
      : event_(event), period_(period), hurry_(hurry) {}
  EventPace() = default;  // all zero bytes: it takes none in a library's file

  /// What the sample stands for: what was counted since the one before, also by samples that were lost. Where others
  /// had the counter for a part of the time, and `shared_counters` says that this is why, the more.
  [[nodiscard]] std::uint64_t weigh(const PerfSample& sample, bool shared_counters);
  /// What reading the event tells without a sample: since the latest one it was to count for `enabled_ns` less that
  /// sample's, and did for a part of it. An event that has no counter takes no sample that could tell.
  void look(std::uint64_t enabled_ns, std::uint64_t running_ns, bool shared_counters);
  /// At the latest look it was to count for long enough to know, and never did.
  [[nodiscard]] bool never_counted() const { return never_counted_; }
  /// Is a new period due? At once where samples come much faster than they are to.
  [[nodiscard]] bool due(std::uint64_t now_ns) const { return now_ns >= due_ns_ || taken_ >= hurry_; }
  /// The period until the next call, drawn around what gives a sample in `wanted_ns` of running time. `counted`,
  /// `running_ns`: of the event, so far.
  [[nodiscard]] std::uint64_t next_period(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t counted,
                                          std::uint64_t running_ns, std::uint64_t& random);
  /// Of the time that the event was to count, the part in which it did, at its latest sample or look.
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
