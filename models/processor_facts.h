// SPDX-License-Identifier: Apache-2.0
// The theoretical peaks in processors' manuals, in instructions and bytes a cycle.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "models/machine.h"

namespace crosstalk::models {

/// Peaks of one core in a cycle. 0: it has no such unit, or CPUID does not tell.
struct CoreFacts {
  std::array<double, 4> add{}, mul{}, fma{};  // instructions, by Width
  double l1_load_bytes = 0, l1_store_bytes = 0;
  double l2_bytes = 0;  // from the second to the first level
};

/// Null: the processor is not in the table, or its cores differ among themselves.
[[nodiscard]] const CoreFacts* facts_of(const Identity& identity);

/// Flops a second of a core at `hz`; nullopt: not known.
[[nodiscard]] std::optional<double> theoretical_flops(const CoreFacts& facts, Width width, Precision precision,
                                                      Operation operation, double hz);

/// Bytes a second that the loops of a core can move in level `level`, likewise. Beyond the first level only loads are
/// known: stores depend there on buffers that manuals do not describe.
[[nodiscard]] std::optional<double> theoretical_bandwidth(const CoreFacts& facts, Level level, Traffic traffic,
                                                          double hz);

}  // namespace crosstalk::models
