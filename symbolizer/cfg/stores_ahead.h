// SPDX-License-Identifier: Apache-2.0
// The stores that a thread may do next, with their addresses as forms of its present registers. Samples of a thread
// that waits for its turn hit the wait and rarely the store that follows it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/registers.h"
#include "symbolizer/cfg/register_effects.h"
#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

struct StoreAhead {
  std::uint64_t instruction = 0;
  Linear address;  // of the registers before the first instruction
  std::uint8_t width = 0;
  AccessKind kind = AccessKind::store;
  /// The data address for a thread with these registers.
  [[nodiscard]] std::uint64_t at(const Registers& registers) const;
};

/// The known code at an address; empty if there is none.
using CodeAt = std::function<std::span<const std::uint8_t>(std::uint64_t address)>;

/// The stores on all ways from the instruction at `from`, both sides of each branch and into directly called functions,
/// nearest first. Leaves out stores whose address depends on values loaded on the way, and those relative to the stack
/// pointer. Visits an instruction once, on the first way that reaches it, so a store in a loop counts with its first
/// iteration. Bounded: 512 instructions, 32 stores.
[[nodiscard]] std::vector<StoreAhead> stores_ahead(std::uint64_t from, const CodeAt& code);

}  // namespace crosstalk::symbolizer
