// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace crosstalk::profile {

/// Makes room for a new profile at `path`: makes its parent directories; an existing file becomes path.old,
/// with its -wal and -shm, replacing what had those names. Fails when `path` is there and no regular file.
[[nodiscard]] Result<void> make_room(const std::string& path);

}  // namespace crosstalk::profile
