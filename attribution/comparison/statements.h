// SPDX-License-Identifier: Apache-2.0
// The result of a comparison in sentences.
#pragma once

#include <vector>

#include "attribution/comparison/comparison.h"

namespace crosstalk::attribution::comparison {

/// Says if the change helped, then other improvements and regressions, then the change of loops. `comparison` is
/// finished. Never empty.
[[nodiscard]] std::vector<Statement> statements_of(const Comparison& comparison);

}  // namespace crosstalk::attribution::comparison
