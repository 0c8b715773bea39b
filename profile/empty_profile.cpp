// SPDX-License-Identifier: Apache-2.0
#include "profile/empty_profile.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "profile/schema.h"
#include "profile/sqlite.h"

namespace crosstalk::profile {
namespace {

using Bytes = std::vector<std::uint8_t>;

// The versions of the file format that a writer and a reader need (sqlite.org/fileformat2.html, 1.3).
constexpr std::size_t write_version_at = 18;
constexpr std::size_t read_version_at = 19;
constexpr std::uint8_t with_a_log = 2;

/// Returns the pages of a profile with its tables and without rows.
Result<Bytes> empty_pages() {
  Result<sqlite::Database> database = sqlite::Database::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!database) {
    return tl::unexpected<Error>(database.error());
  }
  const std::string version = std::to_string(schema::version);
  const std::string sql = "PRAGMA page_size = 8192; PRAGMA application_id = " + std::to_string(schema::application_id) +
                          "; PRAGMA user_version = " + version + ";" + schema::create_tables() +
                          "INSERT INTO meta(key, value) VALUES('schema_version', " + version +
                          "), ('time_base_ns', 0);";
  if (Result<void> made = database->execute(sql.c_str()); !made) {
    return tl::unexpected<Error>(made.error());
  }
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> pages(sqlite3_serialize(database->handle(), "main", &size, 0),
                                                              sqlite3_free);
  if (pages == nullptr) {
    return fail(ErrorCode::system, "out of memory");
  }
  Bytes bytes(pages.get(), pages.get() + size);
  bytes[write_version_at] = bytes[read_version_at] = with_a_log;
  return bytes;
}

Result<void> write_new(const std::string& path, std::span<const std::uint8_t> bytes) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  while (file.valid() && !bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written <= 0) {
      break;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (!file.valid() || !bytes.empty()) {
    return fail(errno == EACCES || errno == EROFS ? ErrorCode::permission : ErrorCode::system, std::strerror(errno));
  }
  return {};
}

}  // namespace

Result<void> make_empty_profile(const std::string& path) {
  static const Result<Bytes> pages = empty_pages();
  if (!pages) {
    return tl::unexpected<Error>(pages.error());
  }
  const Result<void> log = write_new(path + "-wal", {});
  return log ? write_new(path, *pages) : log;
}

}  // namespace crosstalk::profile
