// SPDX-License-Identifier: Apache-2.0
// What a comparison comes to, in sentences.
#pragma once

#include <vector>

#include "attribution/comparison/comparison.h"

namespace crosstalk::attribution::comparison {

/// Whether it helped; what else became better or worse; how loops go. Of a finished comparison. Never empty.
[[nodiscard]] std::vector<Statement> statements_of(const Comparison& comparison);

}  // namespace crosstalk::attribution::comparison
