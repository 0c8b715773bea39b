// SPDX-License-Identifier: Apache-2.0
// What one iteration of a loop executes itself, whichever way it goes, and how many iterations a visit has.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "symbolizer/loops/loop_counters.h"

namespace crosstalk::symbolizer {

enum class WorkKind : std::uint8_t { instructions, loads, stores, bytes, flops };
inline constexpr std::size_t work_kinds = 5;

/// The least and the most over all ways from the header round to it, inner loops counted as nothing.
struct WorkRange {
  double least = 0, most = 0;
};

struct IterationWork {
  std::array<std::optional<WorkRange>, work_kinds> own;  // absent: an instruction on the way does not fix it
  std::string unknown;  // why nothing is known, half a sentence; empty: `own` holds what is
};

/// Of the loop `index` of `nest`. `read` gives the function's bytes.
[[nodiscard]] IterationWork iteration_work(const ControlFlow& flow, const LoopNest& nest, std::uint32_t index,
                                           const ReadBytes& read);

}  // namespace crosstalk::symbolizer
