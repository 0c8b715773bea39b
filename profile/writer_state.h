// SPDX-License-Identifier: Apache-2.0
// The state of a ProfileWriter. Internal to the writer.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "profile/bound_columns.h"
#include "profile/model.h"
#include "profile/schema.h"
#include "profile/sqlite.h"

namespace crosstalk::profile {

/// A prepared statement for each kind of row, and those for rows of no kind of their own.
class Statements {
 public:
  sqlite::Statement meta, delete_words;

  template <class Row>
  [[nodiscard]] sqlite::Statement& put() {
    return std::get<Put<Row>>(rows_).statement;
  }

  [[nodiscard]] Result<void> prepare(const sqlite::Database& database) {
    Result<void> result = prepare(database, schema::put_meta, meta);
    result = result ? prepare(database, schema::delete_watch_words, delete_words) : result;
    std::apply([&](auto&... row) { ((result = result ? row.prepare(database) : result), ...); }, rows_);
    return result;
  }

 private:
  static Result<void> prepare(const sqlite::Database& database, const std::string& sql, sqlite::Statement& statement) {
    Result<sqlite::Statement> prepared = database.prepare(sql);
    if (!prepared) {
      return tl::unexpected<Error>(prepared.error());
    }
    statement = std::move(*prepared);
    return {};
  }

  template <class Row>
  struct Put {
    sqlite::Statement statement;
    [[nodiscard]] Result<void> prepare(const sqlite::Database& database) {
      return Statements::prepare(database, schema::put_row<Row>(), statement);
    }
  };
  template <class... Rows>
  static std::tuple<Put<Rows>...> puts_of(RowKinds<Rows...>);
  decltype(puts_of(StoredRows{})) rows_;
};

template <class Value>
void bind_value(sqlite::Statement& statement, const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    statement.bind(std::string_view(value));
  } else if constexpr (std::is_same_v<Value, std::optional<int>> ||
                       std::is_same_v<Value, std::optional<std::uint64_t>>) {
    value ? statement.bind(static_cast<std::int64_t>(*value)) : statement.bind_null();
  } else if constexpr (std::is_floating_point_v<Value>) {
    statement.bind(static_cast<double>(value));
  } else {
    statement.bind(static_cast<std::int64_t>(value));  // integers, bool, enumerations
  }
}

/// The file being written, and the parts of it that are kept in memory.
struct WriterState {
  sqlite::Database database;
  Statements statements;
  PackingState packing;
  std::string path;
  std::uint64_t time_base_ns = 0;  // zero of `time` columns; fixed by the first session put
  bool based = false;
  bool failed = false;

  /// Runs `write` in the open transaction, unless an earlier failure has not been retried.
  template <class Write>
  [[nodiscard]] Result<void> guarded(Write&& write) {
    if (failed) {
      return {};
    }
    Result<void> result;
    if (!database.in_transaction()) {
      result = database.execute("BEGIN");
    }
    if (result) {
      result = write();
    }
    if (!result) {
      return give_up(result.error());
    }
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> give_up(const Error& error) {
    failed = true;
    packing.registers.clear();  // rows that are lost are nothing to count from
    if (database.in_transaction()) {
      (void)database.execute("ROLLBACK");  // SQLite may have done so itself: then this fails harmlessly
    }
    return fail(error.code, "cannot write the profile '" + path + "': " + error.message);
  }

  void fix_base(std::uint64_t time_ns) {
    if (!based) {
      time_base_ns = time_ns;
      based = true;
    }
  }

  template <class Value>
  [[nodiscard]] Result<void> put_meta(std::string_view key, const Value& value) {
    statements.meta.bind(key);
    bind_value(statements.meta, value);
    return statements.meta.run();
  }

  /// Puts the row into its table; part of guarded().
  template <class Row>
  [[nodiscard]] Result<void> put_row(const Row& row) {
    fix_base(0);
    sqlite::Statement& put = statements.put<Row>();
    BoundColumns columns(put, packing, time_base_ns);
    visit_row(columns, row);
    if (columns.out_of_memory()) {
      put.reset();
      return fail(ErrorCode::system, std::string("no memory to pack a row of table ") + table_of<Row>.name);
    }
    return put.run();
  }
};

}  // namespace crosstalk::profile
