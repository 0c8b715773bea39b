// SPDX-License-Identifier: Apache-2.0
// What a person should read first, in plain sentences. A pure function of the rest of the analysis.
#pragma once

#include <vector>

#include "attribution/model.h"

namespace crosstalk::attribution {

/// The most important first; never empty. Reads everything of `analysis` but its findings.
[[nodiscard]] std::vector<Finding> findings_of(const Analysis& analysis);

}  // namespace crosstalk::attribution
