// SPDX-License-Identifier: Apache-2.0
// A simulated program under a simulated observer: the rows of its profile, and the truth.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "attribution/timeline/ownership_timeline.h"
#include "profile/model.h"
#include "tests/simulation/scenario.h"

namespace crosstalk::simulation {

/// Communications of one ordered pair, of one sort.
struct Truth {
  std::uint64_t count = 0;
  double cost_s = 0;  // time of the communicating accesses
};
/// By (producer, consumer): [0] false sharing, [1] true sharing.
using TrueMatrix = std::map<std::pair<std::uint32_t, std::uint32_t>, std::array<Truth, 2>>;

struct SimulatedRun {
  std::vector<profile::ThreadRow> threads;
  std::vector<profile::SampleRow> samples;  // in time order within a thread
  std::vector<profile::WatchRow> watches;   // by id
  std::vector<profile::TrapRow> traps;      // by watch, then sequence
  std::vector<profile::EventRow> events;    // of sources that count
  TrueMatrix truth;
  double cpu_s = 0;  // of all threads
};

/// Simulates a run; the same seed gives the same run. Its samples are in the memory of `room`: over many runs, half of
/// the time went into new memory for each.
[[nodiscard]] SimulatedRun simulate(const Scenario& scenario, std::uint64_t seed,
                                    std::vector<profile::SampleRow> room = {});
/// Returns the access of the instruction before a trap of a simulated run.
[[nodiscard]] std::optional<symbolizer::MemoryAccess> simulated_access(attribution::Moment moment, std::uint64_t ip);

}  // namespace crosstalk::simulation
