// SPDX-License-Identifier: Apache-2.0
// The memory operands of a loop's own body as sums of registers at its header: their address in an iteration, and their
// change to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::symbolizer {

/// One access of the body.
struct LoopOperand {
  std::uint64_t instruction = 0;  // module address
  std::uint8_t width = 0;         // bytes; 0: not known
  bool loads = false, stores = false;
  bool streaming = false;      // stores past the caches
  bool one_place = false;      // it does not move: on the stack frame, a variable
  std::optional<Linear> form;  // its address by registers at the header; nullopt: not linear in them
};

/// The address and stride of an operand at a moment of the loop. nullopt if a register that it needs is not known then,
/// or only half of it.
struct OperandPlace {
  std::uint64_t address = 0;
  std::int64_t stride = 0;  // bytes an iteration
};
[[nodiscard]] std::optional<OperandPlace> place_of(const LoopOperand& operand, const LoopMoment& moment);

/// The operands on all ways through the loop, by address. Empty if there are too many ways.
[[nodiscard]] std::vector<LoopOperand> loop_operands(LoopAnatomy& anatomy, std::uint32_t loop);

}  // namespace crosstalk::symbolizer
