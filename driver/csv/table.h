// SPDX-License-Identifier: Apache-2.0
// Writes JSON objects as CSV: each object is a row, and its nested members become columns (docs/report-csv.md).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace crosstalk::driver {

/// (column, field) pairs in the order in which they were added.
using CsvRow = std::vector<std::pair<std::string, std::string>>;

/// Returns one value as a field: empty for null, 0 or 1 for a boolean.
[[nodiscard]] std::string csv_text(const nlohmann::ordered_json& value);
/// Appends a value to `row`: as one column `name`, or as a column for each member. An interval `ci95` has the columns
/// `.low` and `.high`; members of `rates` and `figures` have no prefix; lists of objects are left out.
void flatten(const std::string& name, const nlohmann::ordered_json& value, CsvRow& row);

/// Rows may have different columns; a missing field is empty.
class CsvTable {
 public:
  void add(CsvRow row);
  void add(const nlohmann::ordered_json& object);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// The line of column names.
  [[nodiscard]] std::string header() const;
  /// The header and the rows.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::vector<std::string> shown_columns() const;

  std::vector<std::string> columns_;
  std::set<std::string> known_;
  std::vector<std::map<std::string, std::string>> rows_;
};

}  // namespace crosstalk::driver
