// SPDX-License-Identifier: Apache-2.0
// Local variables and parameters in a function's stack frame.
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

/// The variable whose bytes hold the run-time address `data`, in the function at module address `code`, in a block of
/// it, or in a call inlined there. `frame` is the function's frame. Variables of blocks that are not alive at one time
/// may share bytes: prefers the one whose block holds `code`, then the smallest. Understands only places that the frame
/// alone gives (frame base, stack or frame pointer plus a constant).
[[nodiscard]] std::optional<FrameVariable> variable_in_frame(Unit& unit, std::uint64_t code, const StackFrame& frame,
                                                             std::uint64_t data);

}  // namespace crosstalk::symbolizer
