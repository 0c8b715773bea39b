// SPDX-License-Identifier: Apache-2.0
// What one x86-64 instruction does for its time: accesses, bytes and floating-point operations. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace crosstalk::symbolizer {

/// Amounts of work. Loads and stores are accesses by instructions (one of 32 bytes is one), bytes what both move
/// between core and cache. Absent: the instruction does not fix it (a repeated or masked one, a gather).
struct Work {
  double instructions = 0;
  std::optional<double> loads = 0.0, stores = 0.0, bytes = 0.0, flops = 0.0;
};

/// Of the instruction at the start of `code`; nullopt for no valid one. Floating-point operations are counted as
/// Intel's FP_ARITH_INST_RETIRED does: one for each element that is added, subtracted, multiplied, divided, compared
/// for its minimum or maximum, rooted or inverted, two where it multiplies and adds; scalar, packed and x87 alike.
[[nodiscard]] std::optional<Work> work_of(std::span<const std::uint8_t> code);

}  // namespace crosstalk::symbolizer
