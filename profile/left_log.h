// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace crosstalk::profile {

/// Moves the log (-wal) that a killed recorder has left into the profile at `path`, which is one file then. No process
/// may have the profile open. Errors: it is no profile, or cannot be written.
[[nodiscard]] Result<void> take_in_log(const std::string& path);

}  // namespace crosstalk::profile
