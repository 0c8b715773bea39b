// SPDX-License-Identifier: Apache-2.0
#include "profile/rotate.h"

#include <filesystem>
#include <system_error>

namespace crosstalk::profile {
namespace {

namespace fs = std::filesystem;

constexpr const char* suffixes[] = {"-journal", "-shm", "-wal", ""};  // the database itself last

tl::unexpected<Error> failure(const std::string& what, const std::error_code& error) {
  const bool forbidden = error == std::errc::permission_denied || error == std::errc::read_only_file_system;
  return fail(forbidden ? ErrorCode::permission : ErrorCode::system,
              what + ": " + error.message() + "; choose another file with -o");
}

}  // namespace

Result<bool> make_room(const std::string& path) {
  std::error_code error;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty() && !fs::is_directory(parent, error)) {
    fs::create_directories(parent, error);
    if (error) {
      return failure("cannot make the directory '" + parent.string() + "'", error);
    }
  }
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return fail(ErrorCode::invalid_argument,
                "cannot write the profile '" + path + "': it is no regular file; choose another file with -o");
  }
  // SQLite would take a -wal without its database, or beside another one, for part of the new profile. The database
  // moves last: after an interruption, the old name is still complete except for its log.
  bool had_one = false;
  for (const char* suffix : suffixes) {
    const std::string from = path + suffix;
    const std::string to = path + ".old" + suffix;
    fs::remove(to, error);
    if (!fs::exists(fs::symlink_status(from, error))) {
      continue;
    }
    error.clear();
    fs::rename(from, to, error);
    if (error) {
      return failure(std::string("cannot rename '").append(from).append("' to '").append(to).append("'"), error);
    }
    had_one = *suffix == 0;
  }
  return had_one;
}

void undo_make_room(const std::string& path, bool had_one) {
  std::error_code error;
  for (const char* suffix : suffixes) {
    fs::remove(path + suffix, error);
    if (had_one) {
      fs::rename(path + ".old" + suffix, path + suffix, error);
    }
  }
}

}  // namespace crosstalk::profile
