// SPDX-License-Identifier: Apache-2.0
// The control-flow graph of one function, from its bytes.
//
// Decodes along the flow from the function's begin, so that instruction boundaries are right. Reads the jump tables of
// the usual compilers. Then decodes code that the flow does not reach (landing pads of exceptions, cases of a table
// that was not understood) from each gap on, skipping padding. Jumps that were not understood are assumed to lead to
// every such gap, or, if there are none or too many, to leave the function.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "symbolizer/cfg/instructions.h"
#include "symbolizer/cfg/jump_tables.h"
#include "symbolizer/elf/elf_file.h"

namespace crosstalk::symbolizer {

struct Block {
  std::uint64_t begin = 0, end = 0;       // module addresses
  std::uint32_t first = 0, last = 0;      // indices into ControlFlow::instructions, `last` inclusive
  std::vector<std::uint32_t> successors;  // indices of blocks
};

struct ControlFlow {
  AddressRange range;
  std::vector<Instruction> instructions;  // sorted by address
  std::vector<Block> blocks;              // sorted by address
  std::vector<std::uint32_t> entries;     // blocks that the flow enters from outside; [0] is the function's begin

  /// The instruction that ends at / begins at / holds `address`, or null.
  [[nodiscard]] const Instruction* ending_at(std::uint64_t address) const;
  [[nodiscard]] const Instruction* holding(std::uint64_t address) const;
  /// The block that holds `address`; nullopt: none.
  [[nodiscard]] std::optional<std::uint32_t> block_at(std::uint64_t address) const;
};

/// True if a call of `target` never returns (abort, __cxa_throw, ...).
using NeverReturns = std::function<bool(std::uint64_t target)>;

/// Larger functions are not analysed.
inline constexpr std::uint64_t largest_function = 4U << 20U;

/// The graph of the function with bytes `code` at range.begin; code.size() == range's size. Takes linear time.
[[nodiscard]] ControlFlow control_flow(AddressRange range, std::span<const std::uint8_t> code, const ReadBytes& read,
                                       const NeverReturns& never_returns);

}  // namespace crosstalk::symbolizer
