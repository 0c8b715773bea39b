// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "profile/sqlite.h"

namespace crosstalk::profile {

/// Opens the profile at `path` for reading, leaving it and its directory untouched, in a read transaction.
/// A recorder's log (-wal) beside it, of one that still runs or was killed, is read with it. Errors name
/// the path and say whether it is missing, foreign, truncated, or of a newer schema.
[[nodiscard]] Result<sqlite::Database> open_profile_file(const std::string& path);

/// Whether the file at `path` begins as a profile does.
[[nodiscard]] bool has_profile_header(const std::string& path);

/// "cannot read the profile 'path': what"
[[nodiscard]] tl::unexpected<Error> read_failure(const std::string& path, ErrorCode code, const std::string& what);

}  // namespace crosstalk::profile
