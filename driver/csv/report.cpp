// SPDX-License-Identifier: Apache-2.0
// Makes tables of the JSON report: a row of a table is a row of one of its lists, flattened.
#include "driver/csv/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/csv/field.h"
#include "driver/json/report.h"
#include "driver/json/values.h"

namespace crosstalk::driver {
namespace {

/// A row's fields by column, in the order of its columns.
using Row = std::vector<std::pair<std::string, std::string>>;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string text_of(const Json& value) {
  return value.is_null()           ? std::string()
         : value.is_boolean()      ? std::string(value.get<bool>() ? "1" : "0")
         : value.is_string()       ? value.get<std::string>()
         : value.is_number_float() ? fmt::format("{}", value.get<double>())
                                   : value.dump();
}

/// Numbers with spaces between, `?` for an unknown one; sentences with semicolons.
std::string joined(const Json& list) {
  std::string text;
  for (const Json& value : list) {
    text += text.empty() ? "" : value.is_string() ? "; " : " ";
    text += value.is_null() ? "?" : text_of(value);
  }
  return text;
}

void flatten(const std::string& name, const Json& value, Row& row);

/// The members of an object. The names of rates and figures stand for themselves.
void flatten_members(const std::string& before, const Json& object, Row& row) {
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
void flatten_list(const std::string& name, const Json& list, Row& row) {
  if (std::none_of(list.begin(), list.end(), [](const Json& each) { return each.is_structured(); })) {
    if (!list.empty()) {  // of an empty one nobody knows which kind it is
      row.emplace_back(name, joined(list));
    }
    return;
  }
  for (const Json& each : list) {
    if (each.is_object() && each.contains("name") && each.contains("per_s")) {
      row.emplace_back(name + "." + text_of(each["name"]), text_of(each["per_s"]));
    }
  }
}

void flatten(const std::string& name, const Json& value, Row& row) {
  const bool interval = name.find("ci95") != std::string::npos;
  if (value.is_object()) {
    flatten_members(name, value, row);
  } else if (interval && value.is_array() && value.size() == 2) {
    row.emplace_back(name + ".low", text_of(value[0]));
    row.emplace_back(name + ".high", text_of(value[1]));
  } else if (interval && value.is_null() && ends_with(name, "ci95")) {
    row.emplace_back(name + ".low", "");
    row.emplace_back(name + ".high", "");
  } else if (value.is_array()) {
    flatten_list(name, value, row);
  } else {
    row.emplace_back(name, text_of(value));
  }
}

/// Rows with any columns; a row lacks fields that it does not have.
class Table {
 public:
  void add(Row row) {
    for (auto& [column, field] : row) {
      if (known_.insert(column).second) {
        columns_.push_back(column);
      }
    }
    rows_.emplace_back(row.begin(), row.end());
  }
  void add(const Json& object) {
    Row row;
    flatten_members("", object, row);
    add(std::move(row));
  }

  [[nodiscard]] std::string text() const {
    if (rows_.empty()) {
      return {};
    }
    const std::vector<std::string> columns = shown_columns();
    std::string text;
    write(columns, text);
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

 private:
  static void write(const std::vector<std::string>& fields, std::string& text) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      text += (i == 0 ? "" : ",") + csv_field(fields[i]);
    }
    text += '\n';
  }
  /// Without those of objects that are null in some rows: their members have columns.
  [[nodiscard]] std::vector<std::string> shown_columns() const {
    std::vector<std::string> shown;
    for (const std::string& column : columns_) {
      const auto member = known_.upper_bound(column + ".");
      const bool has_members = member != known_.end() && member->compare(0, column.size() + 1, column + ".") == 0;
      if (!has_members) {
        shown.push_back(column);
      }
    }
    return shown;
  }

  std::vector<std::string> columns_;
  std::set<std::string> known_;
  std::vector<std::map<std::string, std::string>> rows_;
};

/// Adds a row for each entry of `list` in each of `rows`, with what the row has besides; for a row without entries,
/// one. `left_out`: the row's own sums, which a spreadsheet would add once for each entry.
void add_entries(const Json& rows, const char* list, const std::set<std::string>& left_out, Table& table) {
  for (const Json& row : rows) {
    Json before = Json::object();
    for (const auto& [key, value] : row.items()) {
      if (key != list && !left_out.contains(key)) {
        before[key] = value;
      }
    }
    for (const Json& entry : row[list]) {
      Json whole = before;
      whole.update(entry);
      table.add(whole);
    }
    if (row[list].empty()) {
      table.add(before);
    }
  }
}

void add_part(const char* part, const Json& row, Table& table) {
  Json whole = {{"part", part}};
  whole.update(row);
  table.add(whole);
}

/// One table for all lists of the view; column `part` names the list.
Table memory_table(const Json& memory) {
  Table table;
  if (!memory["unknown"].is_null()) {
    add_part("unknown", {{"name", memory["unknown"]}}, table);
    return table;
  }
  add_part("total", memory["totals"], table);
  add_part("shared_total", memory["shared_totals"], table);
  for (const auto& [part, list] :
       {std::pair{"source", "sources"}, {"line", "lines"}, {"object", "objects"}, {"loop", "loops"}}) {
    for (const Json& row : memory[list]) {
      add_part(part, row, table);
    }
  }
  for (const Json& line : memory["shared_lines"]) {
    add_part("shared_line", line, table);
    for (const Json& offset : line["offsets"]) {
      Json row = {{"address", line["address"]}};
      row.update(offset);
      add_part("shared_offset", row, table);
    }
  }
  for (const Json& pair : memory["sampled_sharing"]["pairs"]) {
    add_part("sampled_pair", pair, table);
  }
  for (const Json& limit : memory["limits"]) {
    add_part("limit", {{"name", limit}}, table);
  }
  return table;
}

Table summary_table(const Json& report) {
  Table table;
  const auto add = [&](const std::string& name, const std::string& value) {
    table.add(Row{{"name", name}, {"value", value}});
  };
  Row facts;
  for (const char* const name : {"command", "filter", "exit_status", "duration_s", "cpu_s"}) {
    facts.emplace_back(name, text_of(report[name]));
  }
  facts.emplace_back("threads", std::to_string(report["threads"].size()));
  flatten("sampling", report["sampling"], facts);
  for (const auto& [name, value] : facts) {
    add(name, value);
  }
  for (const Json& finding : report["findings"]) {
    add("finding", text_of(finding["sentence"]));
  }
  for (const Json& warning : report["warnings"]) {
    add("warning." + text_of(warning["code"]), text_of(warning["message"]));
  }
  return table;
}

/// Pairs of groups by their names.
Table group_pairs(const Json& groups) {
  Table table;
  for (Json cell : groups["cells"]) {
    for (const char* const end : {"producer", "consumer"}) {
      cell[end] = groups["groups"][cell[end].get<std::size_t>()]["name"];
    }
    table.add(cell);
  }
  return table;
}

/// Groups with the numbers of their members.
Table group_rows(const Json& groups) {
  Table table;
  for (Json group : groups["groups"]) {
    for (const char* const members : {"threads", "processors"}) {
      if (group.contains(members)) {
        group[members] = group[members].size();
      }
    }
    table.add(group);
  }
  return table;
}

Table rows_of(const Json& list) {
  Table table;
  for (const Json& row : list) {
    table.add(row);
  }
  return table;
}

Table thread_rows(const Json& threads) {
  Table table;
  for (const Json& thread : threads) {
    if (thread["listed"].get<bool>()) {
      Json row = thread;
      row.erase("listed");
      table.add(row);
    }
  }
  return table;
}

Table region_rows(const Json& regions) {
  Table table;
  for (const Json& region : regions) {
    for (const Json& thread : region["threads"]) {
      Json row = {{"path", region["path"]}};
      row.update(thread);
      table.add(row);
    }
  }
  return table;
}

}  // namespace

std::string render_csv(const attribution::Analysis& analysis, View view, const attribution::Grouping* groups) {
  const Json report = report_document(analysis, view, groups);
  Table table;
  switch (view) {
    case View::summary:
      return summary_table(report).text();
    case View::matrix:
      return (groups != nullptr ? group_pairs(report["groups"]) : rows_of(report["communication"]["cells"])).text();
    case View::lines:
    case View::objects:
      add_entries(report[view == View::lines ? "lines" : "objects"], "cells",
                  {"cost_s", "cost_ci95", "gain_s", "gain_ci95"}, table);
      return table.text();
    case View::loops:
    case View::busy:  // the same rows: these figures are among theirs
      return rows_of(report["loops"]).text();
    case View::regions:
      return region_rows(report["regions"]).text();
    case View::memory:
      return memory_table(report["memory"]).text();
    case View::threads:
      return (groups != nullptr ? group_rows(report["groups"]) : thread_rows(report["threads"])).text();
    case View::source:
    case View::assembly:
      break;  // text alone
  }
  return {};
}

}  // namespace crosstalk::driver
