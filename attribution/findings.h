// SPDX-License-Identifier: Apache-2.0
// The findings to read first, in plain sentences. A pure function of the rest of the analysis.
#pragma once

#include <vector>

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// The most important finding first; never empty. Reads all of `analysis` but its findings.
[[nodiscard]] std::vector<Finding> findings_of(const Analysis& analysis);

}  // namespace crosstalk::attribution
