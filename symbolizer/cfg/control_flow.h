// SPDX-License-Identifier: Apache-2.0
// The control-flow graph of one function, from its bytes.
//
// Code is decoded along the flow from the function's begin, so that instruction boundaries are right. Jump
// tables of the usual compilers are read. What the flow does not reach after that (landing pads of exceptions,
// cases of a table that was not understood) is decoded as well, from each gap on, padding skipped; jumps that
// were not understood are taken to lead to every such gap, or else to leave the function.
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
};

/// Whether a call of `target` never returns (abort, __cxa_throw, ...).
using NeverReturns = std::function<bool(std::uint64_t target)>;

/// Functions of more bytes than this are not analysed.
inline constexpr std::uint64_t largest_function = 4U << 20U;

/// The graph of the function whose bytes are `code` at range.begin; code.size() == range's size. Linear in it.
[[nodiscard]] ControlFlow control_flow(AddressRange range, std::span<const std::uint8_t> code, const ReadBytes& read,
                                       const NeverReturns& never_returns);

}  // namespace crosstalk::symbolizer
