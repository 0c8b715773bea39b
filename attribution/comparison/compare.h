// SPDX-License-Identifier: Apache-2.0
// Two profiles, before and after a change: what became better or worse, and how sure that is. Pure: analyses in, rows
// out.
#pragma once

#include <optional>

#include "attribution/comparison/comparison.h"
#include "attribution/model.h"

namespace crosstalk::attribution::comparison {

struct Options {
  std::optional<Unit> unit;  // absent: as the profiles allow
  double run_to_run = 0.15;  // see change_of()
};

[[nodiscard]] Comparison compare(const Analysis& before, const Analysis& after, const Options& options);

}  // namespace crosstalk::attribution::comparison
