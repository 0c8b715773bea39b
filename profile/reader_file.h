// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "profile/sqlite.h"

namespace crosstalk::profile {

/// Opens the profile at `path` for reading in a read transaction; the file and its directory stay untouched. Reads with
/// it the log (-wal) of a recorder that still runs or was killed. Errors name the path and say whether the file is
/// missing, foreign, truncated, or of another schema.
[[nodiscard]] Result<sqlite::Database> open_profile_file(const std::string& path);

/// True if the file at `path` begins with a profile's header.
[[nodiscard]] bool has_profile_header(const std::string& path);

/// "cannot read the profile 'path': what"
[[nodiscard]] tl::unexpected<Error> read_failure(const std::string& path, ErrorCode code, const std::string& what);

/// The failure of a profile whose schema version is not the one that this crosstalk reads.
[[nodiscard]] tl::unexpected<Error> other_version(const std::string& path, std::int64_t version);

}  // namespace crosstalk::profile
