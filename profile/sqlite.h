// SPDX-License-Identifier: Apache-2.0
// Wraps SQLite in RAII and Result for the profile's writer and reader. Not thread-safe.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace crosstalk::profile::sqlite {

/// A prepared statement. step() reports an attempt to bind an impossible index, which is a programming error.
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  // Calls bind the parameters in order, from the first after a reset.
  Statement& bind(std::int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view text);
  Statement& bind(std::span<const std::uint8_t> blob);
  Statement& bind_null();
  /// Binds NULL for 0, which in a profile means an absent value.
  Statement& bind_unless_zero(std::uint64_t value);

  /// True when a row is there, false at the end (the statement is then reset).
  [[nodiscard]] Result<bool> step();
  /// Runs a statement that gives no rows, and resets it.
  [[nodiscard]] Result<void> run();
  void reset();

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::span<const std::uint8_t> blob(int column) const;  // until the next step()

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_parameter_ = 1;
  int bind_status_ = SQLITE_OK;
};

class Database {
 public:
  Database() = default;
  /// `flags` as of sqlite3_open_v2; `name` a path or, with SQLITE_OPEN_URI, a URI.
  [[nodiscard]] static Result<Database> open(const std::string& name, int flags);

  [[nodiscard]] Result<void> execute(const char* sql);
  [[nodiscard]] Result<Statement> prepare(std::string_view sql) const;
  /// The first column of the first row; nothing if there is no row.
  [[nodiscard]] Result<std::optional<std::int64_t>> query_integer(std::string_view sql) const;
  [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }
  /// The rowid of the latest insertion.
  [[nodiscard]] std::int64_t last_row() const { return sqlite3_last_insert_rowid(handle_.get()); }
  [[nodiscard]] sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

/// `path` as a file: URI with these query parameters ("a=b&c=d"). Escapes special characters.
[[nodiscard]] std::string file_uri(std::string_view path, std::string_view parameters);

}  // namespace crosstalk::profile::sqlite
