// SPDX-License-Identifier: Apache-2.0
// The events that sample memory accesses, of one thread or, where the kernel has it no other way, of one processor:
// opened, read, and kept at a pace.
//
// An event counts accesses (or micro-operations, or whatever it is) and takes a sample each time it has counted a
// period. The period follows how much the thread does, so that there is a sample in so much of its time, and is drawn
// by chance around that: a loop whose accesses repeat in step with it would always be sampled at the same one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "collectors/observer/kernel_events.h"
#include "collectors/observer/perf_records.h"
#include "collectors/observer/perf_ring.h"

namespace crosstalk::observer {

using MemoryEvents = std::vector<collectors::MemoryEvent>;

struct SamplingPlace {
  static constexpr pid_t any_thread = -1;
  static constexpr int any_cpu = -1;
  pid_t tid = any_thread;
  int cpu = any_cpu;
};

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

class MemorySampler {
 public:
  /// By event, in their order; empty: as the events have them.
  using Periods = std::vector<std::uint64_t>;
  /// Opens the events, disabled. They must outlive it. `periods`: to begin with, as others were found to need. Errors:
  /// not_found (the thread is gone), permission, system.
  [[nodiscard]] static Result<MemorySampler> open(const MemoryEvents& events, SamplingPlace place,
                                                  const Periods& periods, std::uint64_t& random);
  void enable();

  struct Ring {
    PerfRing ring;
    int fd = -1;  // of the event whose ring it is: readable when there is something in it
    SampleLayout layout;
  };
  [[nodiscard]] std::vector<Ring>& rings() { return rings_; }
  /// What the sample stands for, and of which event it is; null: of none of these.
  [[nodiscard]] const collectors::MemoryEvent* weigh(const PerfSample& sample, std::uint64_t& weight);
  /// Draws new periods where they are due, for a sample in `wanted_ns` of time.
  void keep_pace(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t& random);
  [[nodiscard]] Periods periods() const;
  /// The smallest part of the time that any of the events had a counter.
  [[nodiscard]] double counting_part() const;

 private:
  struct Open {
    std::optional<OpenEvent> leader;
    OpenEvent event;
    EventPace pace;
  };
  MemorySampler() = default;
  Result<void> add(const collectors::MemoryEvent& event, SamplingPlace place, std::uint64_t period,
                   std::uint64_t& random);
  Result<void> provide_ring(const OpenEvent& event, const SampleLayout& layout);

  std::vector<Open> events_;
  std::vector<Ring> rings_;
  bool one_unit_ = true;  // else events of the other units rest while the thread is on a core of this one
};

}  // namespace crosstalk::observer
