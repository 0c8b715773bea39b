// SPDX-License-Identifier: Apache-2.0
// Measured waits for other threads, in two profiles side by side.
#pragma once

#include <vector>

#include "attribution/comparison/comparison.h"

namespace crosstalk::attribution::comparison {

/// A row for each class of waits that one of the profiles has; empty if neither measured waits. Waits that were timed
/// have the intervals by which runs differ; those that were sampled from outside have their own, too. `result` has the
/// unit, the CPU times and `run_to_run`.
[[nodiscard]] std::vector<WaitRow> wait_rows(const Analysis& before, const Analysis& after, const Comparison& result);
/// "waits for locks".
[[nodiscard]] const char* waits_in_words(profile::WaitClass what);

}  // namespace crosstalk::attribution::comparison
