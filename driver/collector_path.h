// SPDX-License-Identifier: Apache-2.0
// Where the library that is loaded into targets lies.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace crosstalk::driver {

inline constexpr const char* collector_variable = "CROSSTALK_COLLECTOR";

/// Places to look in, best first, for an executable at `executable` (absolute): as installed, as built.
[[nodiscard]] std::vector<std::string> collector_candidates(const std::string& executable);

/// Absolute path of libcrosstalk.so: $CROSSTALK_COLLECTOR when it is set, else the first candidate that is there.
[[nodiscard]] Result<std::string> find_collector();

}  // namespace crosstalk::driver
