// SPDX-License-Identifier: Apache-2.0
// A CSV table of rows of JSON: a row is an object, flattened (docs/report-csv.md).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace crosstalk::driver {

/// A row's fields by column, in the order of its columns.
using CsvRow = std::vector<std::pair<std::string, std::string>>;

/// Returns one value as a field: empty for null, 0 or 1 for a boolean.
[[nodiscard]] std::string csv_text(const nlohmann::ordered_json& value);
/// Appends a value's columns to `row`: `name`, or those of its members.
void flatten(const std::string& name, const nlohmann::ordered_json& value, CsvRow& row);

/// Rows with any columns; a row lacks fields that it does not have.
class CsvTable {
 public:
  void add(CsvRow row);
  void add(const nlohmann::ordered_json& object);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// The first line.
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
