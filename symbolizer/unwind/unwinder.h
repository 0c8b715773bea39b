// SPDX-License-Identifier: Apache-2.0
// Call stacks from captured registers and stack bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "symbolizer/model/model.h"
#include "symbolizer/unwind/frame_rules.h"

namespace crosstalk::symbolizer {

/// The rules of a module; null if it has none.
using RulesOf = std::function<FrameRules*(ModuleId module)>;

/// See Symbolizer::unwind_frames. Registers and stack may hold any values: each step reads only inside `stack` and
/// moves up it (a signal frame may move anywhere, within max_frames).
[[nodiscard]] std::vector<StackFrame> unwind_stack(const Registers& registers, std::span<const std::uint8_t> stack,
                                                   std::span<const Mapping> mappings, std::size_t max_frames,
                                                   const RulesOf& rules_of);

}  // namespace crosstalk::symbolizer
