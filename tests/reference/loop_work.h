// SPDX-License-Identifier: Apache-2.0
// The work of each natural loop of the program, from its instructions' counts.
#pragma once

#include <span>
#include <vector>

#include "symbolizer/symbolizer.h"
#include "tests/reference/module_map.h"
#include "tests/reference/raw_counts.h"
#include "tests/reference/resolver.h"

namespace crosstalk::reference {

[[nodiscard]] Work work_of(const RawCode& code);

/// Returns the executed loops, most instructions first. `modules` by file.
[[nodiscard]] std::vector<LoopRow> loop_rows(const RawCounts& raw, const ModuleMap& map,
                                             symbolizer::Symbolizer& symbolizer, std::span<const ModuleId> modules);

}  // namespace crosstalk::reference
