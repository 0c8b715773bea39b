// SPDX-License-Identifier: Apache-2.0
// The definition and the statements of a profile's tables (tables.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profile/tables.h"

namespace crosstalk::profile::schema {

/// In the SQLite header, offset 68: "CTLK". file(1) and the reader recognise a profile by it.
inline constexpr std::uint32_t application_id = 0x43544c4b;
/// In meta('schema_version') and PRAGMA user_version. A reader reads its own version only, as long as none was
/// released.
inline constexpr std::int64_t version = 1;

inline constexpr const char* put_meta = "INSERT OR REPLACE INTO meta(key, value) VALUES(?,?)";
inline constexpr const char* get_meta = "SELECT key, value FROM meta";
inline constexpr const char* delete_watch_words = "DELETE FROM watch_word WHERE watch = ? AND word >= ?";

/// Returns the statements that make all tables.
[[nodiscard]] std::string create_tables();

struct Column {
  const char* name;
  const char* type;
  bool nullable = false;
};

/// Collects the columns of a table (tables.h).
class ColumnNames {
 public:
  static constexpr bool reads = true;
  explicit ColumnNames(SampleParts parts = SampleParts::all) : parts_(parts) {}

  template <class Field, class Kind>
  void column(const char* name, const Field& /*field*/, const Kind& /*kind*/) {
    all_.push_back({name, Kind::type, Kind::nullable});
  }
  template <class Holds>
  void demand(const Holds&, const char*, std::int64_t) {}
  [[nodiscard]] bool is_whole() const { return parts_ == SampleParts::all; }
  [[nodiscard]] bool leaves_out(StackId) const { return false; }

  [[nodiscard]] const std::vector<Column>& all() const { return all_; }

 private:
  SampleParts parts_;
  std::vector<Column> all_;
};

template <class Row>
[[nodiscard]] std::vector<Column> columns_of(SampleParts parts = SampleParts::all) {
  ColumnNames names(parts);
  Row row{};
  visit_row(names, row);
  return names.all();
}

[[nodiscard]] std::string put_statement(const Table& table, std::size_t columns);
[[nodiscard]] std::string get_statement(const Table& table, std::span<const Column> columns);

/// Returns the statement that puts a row of this kind.
template <class Row>
[[nodiscard]] std::string put_row() {
  return put_statement(table_of<Row>, columns_of<Row>().size());
}
/// Returns the statement that gets the rows of this kind in their order.
template <class Row>
[[nodiscard]] std::string get_rows() {
  return get_statement(table_of<Row>, columns_of<Row>());
}
/// `measured`: with what visit_rest() visits of each SampleMeasurement.
[[nodiscard]] std::string get_samples(SampleParts parts, bool measured);

}  // namespace crosstalk::profile::schema
