// SPDX-License-Identifier: Apache-2.0
// Local variables and parameters that lie in a function's frame on the stack.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>

#include "symbolizer/dwarf/debug_info.h"

namespace crosstalk::symbolizer {

struct FrameVariable {
  Dwarf_Die die{};          // of the variable
  Dwarf_Die type{};         // its size is known
  std::uint64_t begin = 0;  // run-time address
};

/// The variable of the function at module address `code`, of a block in it, or of a call that is inlined there, whose
/// bytes hold the run-time address `data`, `frame` being the function's frame. Where several do, as variables of blocks
/// that are not alive at one time may, the one whose block holds `code`, else the smallest. Only places that the frame
/// alone tells are understood (frame base, stack or frame pointer plus a constant).
[[nodiscard]] std::optional<FrameVariable> variable_in_frame(Unit& unit, std::uint64_t code, const StackFrame& frame,
                                                             std::uint64_t data);

}  // namespace crosstalk::symbolizer
