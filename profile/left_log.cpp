// SPDX-License-Identifier: Apache-2.0
#include "profile/left_log.h"

#include "profile/reader_file.h"
#include "profile/sqlite.h"

namespace crosstalk::profile {

// SQLite writes the log into the file, and removes it, when the last connection is closed.
Result<void> take_in_log(const std::string& path) {
  if (!has_profile_header(path)) {
    return fail(ErrorCode::corrupt, "'" + path + "' is no profile of crosstalk");
  }
  auto database = sqlite::Database::open(sqlite::file_uri(path, "mode=rw"), SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI);
  auto taken =
      database ? database->execute("PRAGMA wal_checkpoint(TRUNCATE);") : tl::unexpected<Error>(database.error());
  return taken ? taken
               : fail(ErrorCode::system, "the log of '" + path + "' cannot be moved into it: " + taken.error().message);
}

}  // namespace crosstalk::profile
