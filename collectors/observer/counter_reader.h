// SPDX-License-Identifier: Apache-2.0
// The hardware counters of a thread: groups of them, opened, read at the samples of their leaders, and kept at a pace.
//
// Groups that do not fit into the processor's counters together take turns, some milliseconds each, which the kernel
// sees to; a reading says how long its group has counted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/observer/arena_ring.h"
#include "collectors/observer/counter_records.h"
#include "collectors/observer/kernel_events.h"
#include "collectors/observer/perf_ring.h"
#include "collectors/observer/perf_types.h"
#include "collectors/pmu/counter_groups.h"
#include "profile/model.h"

namespace crosstalk::observer {

using CounterGroups = std::vector<collectors::CounterGroup>;

/// The state of counters, for the report.
struct CounterTally {
  std::uint64_t readings = 0, lost = 0, throttled = 0;
  std::uint64_t enabled_ns = 0, running_ns = 0;  // of groups, so far as their threads are parted with
  std::uint64_t without = 0;                     // threads whose counters could not be opened
  std::uint64_t never = 0;                       // groups that were to count for long enough, and never did
  std::string refusal;                           // why, of the last of them

  /// The reason stays.
  [[nodiscard]] CounterTally since(const CounterTally& before) const;
};

class CounterReader {
 public:
  /// Opens the groups, disabled, with one ring. They must outlive it. `life`: distinguishes its readings from those of
  /// the thread's other readers. Errors: not_found (the thread is gone), permission, system.
  [[nodiscard]] static Result<CounterReader> open(const CounterGroups& groups, pid_t tid, std::uint32_t life,
                                                  std::uint64_t& random);
  void enable();
  /// Writes the readings since the last call as records. Returns how many there are.
  std::uint64_t drain(ArenaRing& records, CounterTally& tally);
  /// Draws new periods that are due, for a reading of each group in `wanted_ns` of the time that it counts.
  void keep_pace(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t& random);
  /// Adds up how long the groups have counted. Before it is closed.
  void account(CounterTally& tally) const;

 private:
  struct Group {
    std::vector<OpenEvent> events;                    // the first leads
    std::unique_ptr<collectors::MemoryEvent> leader;  // as the pace has it, which refers to it
    EventPace pace;
  };
  CounterReader() = default;
  Result<void> add(const collectors::CounterGroup& group, pid_t tid, std::uint64_t& random);
  void take(const CounterSample& sample, ArenaRing& records, CounterTally& tally);

  std::vector<Group> groups_;
  std::optional<PerfRing> ring_;
  std::uint32_t life_ = 0;
};

/// Returns warnings for the profile; none if there is nothing to say.
[[nodiscard]] std::vector<profile::MessageRow> remarks_on(const CounterTally& tally);

}  // namespace crosstalk::observer
