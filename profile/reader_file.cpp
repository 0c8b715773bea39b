// SPDX-License-Identifier: Apache-2.0
#include "profile/reader_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/unique_fd.h"
#include "profile/schema.h"
#include "profile/switched_files.h"

namespace crosstalk::profile {
namespace {

namespace fs = std::filesystem;
using sqlite::Database;

// The first 100 bytes of a SQLite file (sqlite.org/fileformat2.html, 1.3), big-endian.
constexpr std::size_t header_size = 100;
constexpr std::size_t page_size_at = 16;
constexpr std::size_t page_count_at = 28;
constexpr std::size_t user_version_at = 60;
constexpr std::size_t application_id_at = 68;
constexpr std::size_t wal_header_size = 32;
using FileHeader = std::array<std::uint8_t, header_size>;

std::uint32_t big_endian(const FileHeader& header, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value = value << 8U | header[at + i];
  }
  return value;
}

/// Bytes of the file `path`; 0 if it is missing.
std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

/// Says that there is no file at `path`, and which ones `record -o PATH --switch-output` has made.
std::string no_such_file(const std::string& path) {
  const std::vector<std::string> switched = switched_files(path);
  if (switched.empty()) {
    return "there is no such file; record one with crosstalk record";
  }
  const std::string others = switched.size() > 1 ? " and " + std::to_string(switched.size() - 1) + " before it" : "";
  return "there is no such file, but record --switch-output has made '" + switched.back() + "'" + others +
         "; name one of them";
}

Result<std::uint64_t> read_header(const std::string& path, FileHeader& header) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const int error = errno;
  if (!fd.valid()) {
    if (error == ENOENT || error == ENOTDIR) {
      return read_failure(path, ErrorCode::not_found, no_such_file(path));
    }
    return read_failure(path, error == EACCES ? ErrorCode::permission : ErrorCode::system, std::strerror(error));
  }
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return read_failure(path, ErrorCode::corrupt, "it is no regular file");
  }
  if (status.st_size == 0) {
    return read_failure(path, ErrorCode::corrupt, "it is empty; record it again");
  }
  const ssize_t got = ::pread(fd.get(), header.data(), header.size(), 0);
  if (got < 0) {
    return read_failure(path, ErrorCode::system, std::strerror(errno));
  }
  if (got < static_cast<ssize_t>(header.size()) || std::memcmp(header.data(), "SQLite format 3", 16) != 0) {
    return read_failure(path, ErrorCode::corrupt, "it is no crosstalk profile (no SQLite database)");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

bool is_ours(const FileHeader& header) { return big_endian(header, application_id_at, 4) == schema::application_id; }

Result<void> check_header(const std::string& path, const FileHeader& header, std::uint64_t size, bool has_log) {
  if (!is_ours(header)) {
    return read_failure(path, ErrorCode::corrupt, "it is a SQLite database of another application");
  }
  const std::uint32_t version = big_endian(header, user_version_at, 4);
  if (version != 0 && version != schema::version) {  // 0: the header's first version is still in the log
    return other_version(path, version);
  }
  const std::uint32_t stored = big_endian(header, page_size_at, 2);
  const std::uint64_t page_size = stored == 1 ? 65536 : stored;
  const std::uint64_t expected = page_size * big_endian(header, page_count_at, 4);
  // With a log, the file may legitimately be shorter.
  if (!has_log && size < expected) {
    return read_failure(path, ErrorCode::corrupt,
                        "it is truncated to " + std::to_string(size) + " of " + std::to_string(expected) +
                            " bytes; record it again or copy it whole");
  }
  return {};
}

/// Hardens the connection: the file may come from anywhere, so nothing in it may run code or make us write.
Result<void> harden(Database& database) {
  sqlite3* db = database.handle();
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 16 << 20);
  return database.execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;");
}

/// Opens `uri` and checks that its tables can be read.
Result<Database> open_hardened(const std::string& uri, int flags, const char* prepare = "") {
  Result<Database> database = Database::open(uri, flags | SQLITE_OPEN_URI);
  if (!database) {
    return database;
  }
  Result<void> result = harden(*database);
  result = result ? database->execute(prepare) : result;
  result = result ? database->execute("BEGIN; SELECT count(*) FROM sqlite_schema;") : result;
  if (!result) {
    return tl::unexpected<Error>(result.error());
  }
  return database;
}

/// A private directory, removed on destruction.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::error_code error;
    const fs::path base = fs::temp_directory_path(error);
    std::string name = ((error ? fs::path("/tmp") : base) / "crosstalk-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) {
      path_ = name;
    }
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    if (!path_.empty()) {
      std::error_code error;
      fs::remove_all(path_, error);
    }
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// SQLite makes the index (-shm) of a log that lacks one, so a copy is opened: nothing is written beside the profile.
Result<Database> open_copy(const std::string& path) {
  const ScratchDirectory scratch;  // unlinked on return; the open files live on
  if (scratch.path().empty()) {
    return fail(ErrorCode::system, "no temporary directory can be made to read its log; set TMPDIR");
  }
  const std::string copy = scratch.path() + "/profile";
  std::error_code error;
  fs::copy_file(path, copy, error);
  if (!error) {
    fs::copy_file(path + "-wal", copy + "-wal", error);
  }
  if (!error) {
    fs::permissions(copy, fs::perms::owner_read | fs::perms::owner_write, error);
    fs::permissions(copy + "-wal", fs::perms::owner_read | fs::perms::owner_write, error);
  }
  if (error) {
    return fail(ErrorCode::system, "its log cannot be copied to '" + scratch.path() + "': " + error.message());
  }
  return open_hardened(sqlite::file_uri(copy, "mode=rw"), SQLITE_OPEN_READWRITE, "PRAGMA locking_mode = EXCLUSIVE;");
}

}  // namespace

tl::unexpected<Error> other_version(const std::string& path, std::int64_t version) {
  return read_failure(path, ErrorCode::unsupported,
                      "its schema version is " + std::to_string(version) + ", this crosstalk reads version " +
                          std::to_string(schema::version) + "; use the crosstalk that wrote it, or record it again");
}

bool has_profile_header(const std::string& path) {
  FileHeader header{};
  return read_header(path, header) && is_ours(header);
}

tl::unexpected<Error> read_failure(const std::string& path, ErrorCode code, const std::string& what) {
  return fail(code, "cannot read the profile '" + path + "': " + what);
}

Result<Database> open_profile_file(const std::string& path) {
  FileHeader header{};
  const Result<std::uint64_t> size = read_header(path, header);
  if (!size) {
    return tl::unexpected<Error>(size.error());
  }
  const bool has_log = size_of(path + "-wal") > wal_header_size;
  const Result<void> sound = check_header(path, header, *size, has_log);
  if (!sound) {
    return tl::unexpected<Error>(sound.error());
  }
  if (!has_log) {
    // Nobody writes the file: immutable needs no locks, no -wal and no -shm.
    Result<Database> database = open_hardened(sqlite::file_uri(path, "mode=ro&immutable=1"), SQLITE_OPEN_READONLY);
    return database ? std::move(database) : read_failure(path, database.error().code, database.error().message);
  }
  std::error_code error;
  if (fs::exists(path + "-shm", error)) {
    Result<Database> database = open_hardened(sqlite::file_uri(path, "mode=ro&readonly_shm=1"), SQLITE_OPEN_READONLY);
    if (database) {
      return database;
    }
  }
  Result<Database> database = open_copy(path);
  return database ? std::move(database) : read_failure(path, database.error().code, database.error().message);
}

}  // namespace crosstalk::profile
