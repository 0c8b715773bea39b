// SPDX-License-Identifier: Apache-2.0
#include "profile/sqlite.h"

#include <cctype>

namespace crosstalk::profile::sqlite {
namespace {

ErrorCode code_of(int status) {
  switch (status & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // a table or column is missing: no schema of ours
    case SQLITE_MISMATCH:
      return ErrorCode::corrupt;
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ErrorCode::permission;
    default:
      return ErrorCode::system;
  }
}

tl::unexpected<Error> failure(sqlite3* db, int status) {
  return fail(code_of(status), db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(status));
}

}  // namespace

Statement& Statement::bind(std::int64_t value) {
  bind_status_ |= sqlite3_bind_int64(statement_.get(), next_parameter_++, value);
  return *this;
}

Statement& Statement::bind(double value) {
  bind_status_ |= sqlite3_bind_double(statement_.get(), next_parameter_++, value);
  return *this;
}

// SQLITE_STATIC: the caller's bytes live until run() or step() is done.
Statement& Statement::bind(std::string_view text) {
  bind_status_ |= sqlite3_bind_text64(statement_.get(), next_parameter_++, text.empty() ? "" : text.data(), text.size(),
                                      SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(std::span<const std::uint8_t> blob) {
  const void* data = blob.empty() ? static_cast<const void*>("") : blob.data();
  bind_status_ |= sqlite3_bind_blob64(statement_.get(), next_parameter_++, data, blob.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_null() {
  bind_status_ |= sqlite3_bind_null(statement_.get(), next_parameter_++);
  return *this;
}

Statement& Statement::bind_unless_zero(std::uint64_t value) {
  return value != 0 ? bind(static_cast<std::int64_t>(value)) : bind_null();
}

Result<bool> Statement::step() {
  const int status = bind_status_ != SQLITE_OK ? SQLITE_MISUSE : sqlite3_step(statement_.get());
  if (status == SQLITE_ROW) {
    return true;
  }
  if (status == SQLITE_DONE) {
    reset();
    return false;
  }
  tl::unexpected<Error> error = failure(sqlite3_db_handle(statement_.get()), status);
  reset();
  return error;
}

Result<void> Statement::run() {
  const Result<bool> row = step();
  reset();
  if (!row) {
    return tl::unexpected<Error>(row.error());
  }
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  next_parameter_ = 1;
  bind_status_ = SQLITE_OK;
}

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(statement_.get(), column);
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? std::string()
                         : std::string(reinterpret_cast<const char*>(data), static_cast<std::size_t>(bytes));
}

std::span<const std::uint8_t> Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr) {
    return {};
  }
  return {static_cast<const std::uint8_t*>(data), static_cast<std::size_t>(bytes)};
}

Result<Database> Database::open(const std::string& name, int flags) {
  Database database;
  sqlite3* handle = nullptr;
  const int status = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database.handle_.reset(handle);
  if (status != SQLITE_OK) {
    return failure(handle, status);
  }
  sqlite3_extended_result_codes(handle, 1);
  return database;
}

Result<void> Database::execute(const char* sql) {
  const int status = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) {
    return failure(handle_.get(), status);
  }
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int status = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (status != SQLITE_OK) {
    return failure(handle_.get(), status);
  }
  return Statement(statement);
}

Result<std::optional<std::int64_t>> Database::query_integer(std::string_view sql) const {
  Result<Statement> statement = prepare(sql);
  if (!statement) {
    return tl::unexpected<Error>(statement.error());
  }
  const Result<bool> row = statement->step();
  if (!row) {
    return tl::unexpected<Error>(row.error());
  }
  if (!*row || statement->is_null(0)) {
    return std::optional<std::int64_t>();
  }
  return std::optional<std::int64_t>(statement->integer(0));
}

std::string file_uri(std::string_view path, std::string_view parameters) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string uri = "file:";
  if (path.substr(0, 2) == "//") {
    uri += "//";  // an empty authority, or SQLite takes the first component for one
  }
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_') {
      uri += c;
    } else {
      uri += '%';
      uri += digits[byte >> 4U];
      uri += digits[byte & 15U];
    }
  }
  uri += '?';
  uri += parameters;
  return uri;
}

}  // namespace crosstalk::profile::sqlite
