// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace crosstalk::profile {

/// Makes room for a new profile at `path`: makes its parent directories; an existing file becomes path.old,
/// with its -wal and -shm, replacing what had those names. Fails when `path` is there and no regular file.
/// True: there was one.
[[nodiscard]] Result<bool> make_room(const std::string& path);

/// Removes the new profile, which did not come about, and puts the previous one (`had_one`) back. After it is closed.
void undo_make_room(const std::string& path, bool had_one);

}  // namespace crosstalk::profile
