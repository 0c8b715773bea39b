// SPDX-License-Identifier: Apache-2.0
#include "driver/csv/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/csv/field.h"
#include "driver/json/values.h"

namespace crosstalk::driver {
namespace {

/// Numbers with spaces between, `?` for an unknown one; sentences with semicolons.
std::string joined(const Json& list) {
  std::string text;
  for (const Json& value : list) {
    text += text.empty() ? "" : value.is_string() ? "; " : " ";
    text += value.is_null() ? "?" : csv_text(value);
  }
  return text;
}

/// The members of an object. The names of rates and figures stand for themselves.
void flatten_members(const std::string& before, const Json& object, CsvRow& row) {
  for (const auto& [key, value] : object.items()) {
    const bool inlined = value.is_object() && (key == "rates" || key == "figures");
    if (inlined) {
      flatten_members(before, value, row);
    } else {
      flatten(before.empty() ? key : before + "." + key, value, row);
    }
  }
}

/// Lists of rows are left out, but for rates with names, as counters have them.
void flatten_list(const std::string& name, const Json& list, CsvRow& row) {
  if (std::none_of(list.begin(), list.end(), [](const Json& each) { return each.is_structured(); })) {
    if (!list.empty()) {  // of an empty one nobody knows which kind it is
      row.emplace_back(name, joined(list));
    }
    return;
  }
  for (const Json& each : list) {
    if (each.is_object() && each.contains("name") && each.contains("per_s")) {
      row.emplace_back(name + "." + csv_text(each["name"]), csv_text(each["per_s"]));
    }
  }
}

void write(const std::vector<std::string>& fields, std::string& text) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    text += (i == 0 ? "" : ",") + csv_field(fields[i]);
  }
  text += '\n';
}

}  // namespace

std::string csv_text(const Json& value) {
  return value.is_null()           ? std::string()
         : value.is_boolean()      ? std::string(value.get<bool>() ? "1" : "0")
         : value.is_string()       ? value.get<std::string>()
         : value.is_number_float() ? fmt::format("{}", value.get<double>())
                                   : value.dump();
}

void flatten(const std::string& name, const Json& value, CsvRow& row) {
  const bool interval = name.find("ci95") != std::string::npos;
  if (value.is_object()) {
    flatten_members(name, value, row);
  } else if (interval && value.is_array() && value.size() == 2) {
    row.emplace_back(name + ".low", csv_text(value[0]));
    row.emplace_back(name + ".high", csv_text(value[1]));
  } else if (interval && value.is_null() && name.ends_with("ci95")) {
    row.emplace_back(name + ".low", "");
    row.emplace_back(name + ".high", "");
  } else if (value.is_array()) {
    flatten_list(name, value, row);
  } else {
    row.emplace_back(name, csv_text(value));
  }
}

void CsvTable::add(CsvRow row) {
  for (auto& [column, field] : row) {
    if (known_.insert(column).second) {
      columns_.push_back(column);
    }
  }
  rows_.emplace_back(row.begin(), row.end());
}

void CsvTable::add(const Json& object) {
  CsvRow row;
  flatten_members("", object, row);
  add(std::move(row));
}

/// Without those of objects that are null in some rows: their members have columns.
std::vector<std::string> CsvTable::shown_columns() const {
  std::vector<std::string> shown;
  for (const std::string& column : columns_) {
    const auto member = known_.upper_bound(column + ".");
    const bool has_members = member != known_.end() && member->starts_with(column + ".");
    if (!has_members) {
      shown.push_back(column);
    }
  }
  return shown;
}

std::string CsvTable::header() const {
  std::string text;
  write(shown_columns(), text);
  return text;
}

std::string CsvTable::text() const {
  const std::vector<std::string> columns = shown_columns();
  std::string text = header();
  for (const auto& row : rows_) {
    std::vector<std::string> fields;
    for (const std::string& column : columns) {
      const auto field = row.find(column);
      fields.push_back(field == row.end() ? std::string() : field->second);
    }
    write(fields, text);
  }
  return text;
}

}  // namespace crosstalk::driver
