// SPDX-License-Identifier: Apache-2.0
// How long one iteration of a loop takes when all its data are in the core's own cache: bounds from its instructions
// alone, by the two limits that a core with register renaming has, how many instructions it takes a cycle and what each
// has to wait for. (The MACS model calls them the bounds of the MA and AC levels; here they are for any x86-64 core.)
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::symbolizer {

/// What of a core is measured and not assumed, in cycles.
struct CoreCycles {
  double locked = 18;  // an atomic read-modify-write of a line in the own cache
  double forward = 4;  // from a store to a load of the same word
};

/// Cycles an iteration. `least` and `most` are bounds: the former for the widest cores with the shortest latencies,
/// each instruction as early as its operands are there, the latter for the longest latencies, with nothing that
/// overlaps the slowest chain, two instructions a cycle. `likely` is for a core of today, as early as operands allow.
struct IterationTime {
  double least = 0, likely = 0, most = 0;
};

/// Of an iteration that executes `path`, the code of one instruction each, in order, again and again. What is called
/// counts for nothing. nullopt where an instruction's time is not bounded by itself: system calls, repeated string
/// instructions.
[[nodiscard]] std::optional<IterationTime> iteration_time(std::span<const std::span<const std::uint8_t>> path,
                                                          const CoreCycles& core);

/// Cycles that an iteration adds to its slowest chain of dependences, on a core of today that has room for everything
/// else. nullopt as for iteration_time().
[[nodiscard]] std::optional<double> chain_cycles(std::span<const std::span<const std::uint8_t>> path,
                                                 const CoreCycles& core);

/// Over several ways that an iteration may go: the least of the least, the most of the most, the mean of the likely.
/// nullopt for none, or when one of them has none.
[[nodiscard]] std::optional<IterationTime> over_ways(std::span<const Way> ways, const CoreCycles& core);

}  // namespace crosstalk::symbolizer
