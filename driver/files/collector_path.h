// SPDX-License-Identifier: Apache-2.0
// Finds the library that is loaded into targets.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace crosstalk::driver {

inline constexpr const char* collector_variable = "CROSSTALK_COLLECTOR";

/// Returns the places to search, best first: as installed, then as built. `executable` is absolute.
[[nodiscard]] std::vector<std::string> collector_candidates(const std::string& executable);

/// Returns the absolute path of libcrosstalk.so: $CROSSTALK_COLLECTOR if set, else the first candidate that exists.
[[nodiscard]] Result<std::string> find_collector();

}  // namespace crosstalk::driver
