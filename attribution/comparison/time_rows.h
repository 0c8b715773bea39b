// SPDX-License-Identifier: Apache-2.0
// CPU time of what a condition may name, in two profiles side by side.
#pragma once

#include <vector>

#include "attribution/comparison/comparison.h"

namespace crosstalk::attribution::comparison {

/// Loops, functions, source lines, threads and regions by name; those of one name are one row. A profile that has no
/// sample of one gives it 0, and at most what so many samples leave room for.
[[nodiscard]] std::vector<TimeRow> time_rows(const Analysis& before, const Analysis& after);

}  // namespace crosstalk::attribution::comparison
