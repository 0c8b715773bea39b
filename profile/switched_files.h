// SPDX-License-Identifier: Apache-2.0
// Names of the profiles of one recording that begins a new one from time to time (`record --switch-output`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crosstalk::profile {

/// Returns `name` with the digits of a moment in UTC behind it: crosstalk.db.20261126041133123. `unix_ms`: milliseconds
/// since 1970. Names of one recording ascend with time.
[[nodiscard]] std::string switched_name(const std::string& name, std::int64_t unix_ms);

/// Returns the existing files with such names, ascending.
[[nodiscard]] std::vector<std::string> switched_files(const std::string& name);

}  // namespace crosstalk::profile
