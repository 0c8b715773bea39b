// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace crosstalk::profile {

/// Makes room for a new profile at `path`: makes its parent directories, and renames an existing file, with its -wal
/// and -shm, to path.old, replacing files of that name. True if there was one. Fails if `path` is no regular file.
[[nodiscard]] Result<bool> make_room(const std::string& path);

/// Removes the failed new profile and puts the previous one (`had_one`) back. Call it after the new profile is closed.
void undo_make_room(const std::string& path, bool had_one);

}  // namespace crosstalk::profile
