// SPDX-License-Identifier: Apache-2.0
// Compares two profiles, before and after a change: improvements, regressions, and their certainty. Pure: analyses in,
// rows out.
#pragma once

#include <optional>

#include "attribution/comparison/comparison.h"
#include "attribution/model/model.h"

namespace crosstalk::attribution::comparison {

struct Options {
  std::optional<Unit> unit;  // absent: as the profiles allow
  double run_to_run = 0.15;  // see change_of()
};

[[nodiscard]] Comparison compare(const Analysis& before, const Analysis& after, const Options& options);

}  // namespace crosstalk::attribution::comparison
