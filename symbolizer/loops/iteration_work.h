// SPDX-License-Identifier: Apache-2.0
// The work that one iteration of a loop executes itself, on any way, and the number of iterations of a visit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "symbolizer/loops/loop_counters.h"

namespace crosstalk::symbolizer {

enum class WorkKind : std::uint8_t { instructions, loads, stores, bytes, flops };
inline constexpr std::size_t work_kinds = 5;

/// The least and the most over all ways from the header back to it, without inner loops.
struct WorkRange {
  double least = 0, most = 0;
};

struct IterationWork {
  std::array<std::optional<WorkRange>, work_kinds> own;  // absent: an instruction on the way does not fix it
  std::string unknown;  // why nothing is known, half a sentence; empty: `own` holds what is
};

/// The work of the loop `index` of `nest`. `read` returns the function's bytes.
[[nodiscard]] IterationWork iteration_work(const ControlFlow& flow, const LoopNest& nest, std::uint32_t index,
                                           const ReadBytes& read);

}  // namespace crosstalk::symbolizer
