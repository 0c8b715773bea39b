// SPDX-License-Identifier: Apache-2.0
// The file that a command writes its result to.
#pragma once

#include <string>

#include "base/result.h"

namespace crosstalk::driver {

/// Writes the whole file or nothing, whatever `path` was: a reader never sees a part.
[[nodiscard]] Result<void> replace_file(const std::string& path, const std::string& bytes);

/// The same if `path` is a regular file or none; else writes into the pipe or device that it is.
[[nodiscard]] Result<void> write_result(const std::string& path, const std::string& bytes);

}  // namespace crosstalk::driver
