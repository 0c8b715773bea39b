// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace crosstalk::profile {

/// Makes a profile without rows at `path`, where no file is, ready for a writer with a log. Its empty log comes first,
/// so that a file without a log beside it is always a finished one. On failure, parts may be left.
[[nodiscard]] Result<void> make_empty_profile(const std::string& path);

}  // namespace crosstalk::profile
