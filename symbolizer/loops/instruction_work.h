// SPDX-License-Identifier: Apache-2.0
// Work of one x86-64 instruction: accesses, bytes and floating-point operations. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace crosstalk::symbolizer {

/// Amounts of work. Loads and stores count accesses by instructions (one of 32 bytes is one), bytes what both move
/// between core and cache. Absent: the instruction does not fix the amount (a repeated or masked one, a gather).
struct Work {
  double instructions = 0;
  std::optional<double> loads = 0.0, stores = 0.0, bytes = 0.0, flops = 0.0;
};

/// The work of the instruction at the start of `code`; nullopt if it is invalid. Counts floating-point operations as
/// Intel's FP_ARITH_INST_RETIRED does: one for each element that is added, subtracted, multiplied, divided, compared
/// for its minimum or maximum, rooted or inverted, two for a multiply-add; scalar, packed and x87 alike.
[[nodiscard]] std::optional<Work> work_of(std::span<const std::uint8_t> code);

/// True for fused multiply-adds, by the mnemonic without its v.
[[nodiscard]] bool is_fused(std::string_view name);

}  // namespace crosstalk::symbolizer
