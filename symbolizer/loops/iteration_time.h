// SPDX-License-Identifier: Apache-2.0
// The time of one iteration of a loop with all its data in the core's own cache. Bounds come from its instructions
// alone, by the two limits of a core with register renaming: its instructions a cycle, and the dependences between
// instructions. (The MACS model calls them the bounds of the MA and AC levels; here they are for any x86-64 core.)
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::symbolizer {

/// Latencies of a core that are measured, not assumed, in cycles.
struct CoreCycles {
  double locked = 18;  // an atomic read-modify-write of a line in the own cache
  double forward = 4;  // from a store to a load of the same word
};

/// Cycles an iteration. `least` and `most` are bounds. `least` is for the widest cores with the shortest latencies,
/// each instruction as early as its operands allow. `most` is for the longest latencies and two instructions a cycle,
/// and nothing overlaps the slowest chain. `likely` is for a core of today, as early as operands allow.
struct IterationTime {
  double least = 0, likely = 0, most = 0;
};

/// The time of an iteration that repeats `path`, the code of one instruction each, in order. Called functions count as
/// nothing. nullopt if an instruction's time has no bound: system calls, repeated string instructions.
[[nodiscard]] std::optional<IterationTime> iteration_time(std::span<const std::span<const std::uint8_t>> path,
                                                          const CoreCycles& core);

/// Cycles that an iteration adds to its slowest chain of dependences, on a core of today with unlimited other
/// resources. nullopt as for iteration_time().
[[nodiscard]] std::optional<double> chain_cycles(std::span<const std::span<const std::uint8_t>> path,
                                                 const CoreCycles& core);

/// Over several ways of an iteration: the least of the least, the most of the most, the mean of the likely. nullopt
/// without ways, or if a way has no time.
[[nodiscard]] std::optional<IterationTime> over_ways(std::span<const Way> ways, const CoreCycles& core);

}  // namespace crosstalk::symbolizer
