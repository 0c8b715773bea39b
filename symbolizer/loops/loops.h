// SPDX-License-Identifier: Apache-2.0
// The loops of a function in terms of its source: addresses, nesting and source lines.
#pragma once

#include <functional>
#include <vector>

#include "symbolizer/cfg/control_flow.h"
#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

/// The inline chain of an address, innermost first; empty: unknown.
using ChainAt = std::function<std::vector<Frame>(std::uint64_t address)>;
/// Equal, non-null values for addresses of one row of the line table; null: no line.
using RowAt = std::function<const void*(std::uint64_t address)>;

/// Finds the loops of `flow`. A loop's lines are those of the function that contains it in the source: the deepest
/// inlined call with both its back edges and most of its instructions, or the function itself. Calls inlined into that
/// function count as the line of the call. Calls `chain_at` once for each row.
[[nodiscard]] FunctionLoops function_loops(const ControlFlow& flow, const RowAt& row_at, const ChainAt& chain_at);

}  // namespace crosstalk::symbolizer
