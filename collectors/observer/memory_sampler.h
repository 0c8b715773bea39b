// SPDX-License-Identifier: Apache-2.0
// Opens, reads and paces the events that sample memory accesses, of one thread or, if the kernel allows it no other
// way, of one processor.
//
// An event counts accesses (or micro-operations, or other things) and takes a sample each time it has counted a period.
// The period follows how much the thread does, so that there is a sample in so much of its time, and is drawn by chance
// around that: a loop whose accesses repeat in step with it would always be sampled at the same one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "collectors/observer/kernel_events.h"
#include "collectors/observer/measured_samples.h"
#include "collectors/observer/module_sampler.h"
#include "collectors/observer/perf_ring.h"
#include "collectors/observer/perf_types.h"

namespace crosstalk::observer {

using MemoryEvents = std::vector<collectors::MemoryEvent>;
/// Returns the events that the kernel takes for processors only, or the others.
[[nodiscard]] MemoryEvents those_of(const MemoryEvents& events, bool each_cpu);

struct SamplingPlace {
  static constexpr pid_t any_thread = -1;
  static constexpr int any_cpu = -1;
  pid_t tid = any_thread;
  int cpu = any_cpu;
};

class MemorySampler {
 public:
  /// By event, in their order; empty: as the events have them.
  using Periods = std::vector<std::uint64_t>;
  /// Opens the events, disabled. They must outlive it. One of our kernel module is alone. `periods`: to begin with, as
  /// others were found to need. Errors: not_found (the thread is gone), permission, system.
  [[nodiscard]] static Result<MemorySampler> open(const MemoryEvents& events, SamplingPlace place,
                                                  const Periods& periods, std::uint64_t& random);
  void enable();

  struct Ring {
    PerfRing ring;
    int fd = -1;  // of the event whose ring it is: readable when there is something in it
    SampleLayout layout;
  };
  [[nodiscard]] std::vector<Ring>& rings() { return rings_; }
  /// Null: its samples come through rings of perf.
  [[nodiscard]] ModuleSampler* module() { return module_ ? &*module_ : nullptr; }
  /// Returns the sample's event and sets `weight` to what the sample stands for; null: its event is none of these.
  [[nodiscard]] const collectors::MemoryEvent* weigh(const PerfSample& sample, std::uint64_t& weight);
  /// Draws new periods that are due, for a sample in `wanted_ns` of time.
  void keep_pace(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t& random);
  [[nodiscard]] Periods periods() const;
  /// Called before the events are closed: reads for how long they had counters, and enters that, since an event without
  /// a counter takes no sample that would tell. Returns true if one of them never had a counter.
  [[nodiscard]] bool account(MeasuredSamples& all);
  /// Returns the smallest part of the time that any of the events had a counter, as far as it is known since the latest
  /// look.
  [[nodiscard]] double counting_part() const;

 private:
  struct Open {
    const collectors::MemoryEvent* what = nullptr;
    std::optional<OpenEvent> leader;
    OpenEvent event;
    EventPace pace;
  };
  MemorySampler() = default;
  Result<void> add(const collectors::MemoryEvent& event, SamplingPlace place, std::uint64_t period,
                   std::uint64_t& random);
  [[nodiscard]] bool lacks_counter() const;
  Result<void> provide_ring(const OpenEvent& event, const SampleLayout& layout);

  std::vector<Open> events_;
  std::optional<ModuleSampler> module_;
  std::vector<Ring> rings_;
  bool one_unit_ = true;  // else events of the other units rest while the thread is on a core of this one
};

}  // namespace crosstalk::observer
