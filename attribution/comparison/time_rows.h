// SPDX-License-Identifier: Apache-2.0
// CPU time of things that a condition may name, in two profiles side by side.
#pragma once

#include <vector>

#include "attribution/comparison/comparison.h"

namespace crosstalk::attribution::comparison {

/// Loops, functions, source lines, threads and regions, one row for each name. For a profile without samples of a name,
/// the value is 0, with the upper limit that its number of samples allows.
[[nodiscard]] std::vector<TimeRow> time_rows(const Analysis& before, const Analysis& after);

}  // namespace crosstalk::attribution::comparison
