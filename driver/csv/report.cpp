// SPDX-License-Identifier: Apache-2.0
// Makes tables of the JSON report: a row of a table is a row of one of its lists, flattened.
#include "driver/csv/report.h"

#include <set>
#include <utility>
#include <vector>

#include "driver/csv/table.h"
#include "driver/json/report.h"
#include "driver/json/values.h"

namespace crosstalk::driver {
namespace {

/// Adds a row for each entry of `list` in each of `rows`, with what the row has besides; for a row without entries,
/// one. `left_out`: the row's own sums, which a spreadsheet would add once for each entry.
void add_entries(const Json& rows, const char* list, const std::set<std::string>& left_out, CsvTable& table) {
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

void add_part(const char* part, const Json& row, CsvTable& table) {
  Json whole = {{"part", part}};
  whole.update(row);
  table.add(whole);
}

/// One table for all lists of the view; column `part` names the list.
CsvTable memory_table(const Json& memory) {
  CsvTable table;
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

CsvTable summary_table(const Json& report) {
  CsvTable table;
  const auto add = [&](const std::string& name, const std::string& value) {
    table.add(CsvRow{{"name", name}, {"value", value}});
  };
  CsvRow facts;
  for (const char* const name : {"command", "filter", "exit_status", "duration_s", "cpu_s"}) {
    facts.emplace_back(name, csv_text(report[name]));
  }
  facts.emplace_back("threads", std::to_string(report["threads"].size()));
  flatten("sampling", report["sampling"], facts);
  for (const auto& [name, value] : facts) {
    add(name, value);
  }
  for (const Json& finding : report["findings"]) {
    add("finding", csv_text(finding["sentence"]));
  }
  for (const Json& warning : report["warnings"]) {
    add("warning." + csv_text(warning["code"]), csv_text(warning["message"]));
  }
  return table;
}

/// Pairs of groups by their names.
CsvTable group_pairs(const Json& groups) {
  CsvTable table;
  for (Json cell : groups["cells"]) {
    for (const char* const end : {"producer", "consumer"}) {
      cell[end] = groups["groups"][cell[end].get<std::size_t>()]["name"];
    }
    table.add(cell);
  }
  return table;
}

/// Groups with the numbers of their members.
CsvTable group_rows(const Json& groups) {
  CsvTable table;
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

CsvTable rows_of(const Json& list) {
  CsvTable table;
  for (const Json& row : list) {
    table.add(row);
  }
  return table;
}

CsvTable thread_rows(const Json& threads) {
  CsvTable table;
  for (const Json& thread : threads) {
    if (thread["listed"].get<bool>()) {
      Json row = thread;
      row.erase("listed");
      table.add(row);
    }
  }
  return table;
}

CsvTable region_rows(const Json& regions) {
  CsvTable table;
  for (const Json& region : regions) {
    for (const Json& thread : region["threads"]) {
      Json row = {{"path", region["path"]}};
      row.update(thread);
      table.add(row);
    }
  }
  return table;
}

CsvTable table_of(const Json& report, View view, bool grouped) {
  CsvTable table;
  switch (view) {
    case View::summary:
      return summary_table(report);
    case View::matrix:
      return grouped ? group_pairs(report["groups"]) : rows_of(report["communication"]["cells"]);
    case View::lines:
    case View::objects:
      add_entries(report[view == View::lines ? "lines" : "objects"], "cells",
                  {"cost_s", "cost_ci95", "gain_s", "gain_ci95"}, table);
      return table;
    case View::loops:
    case View::busy:  // the same rows: these figures are among theirs
      return rows_of(report["loops"]);
    case View::regions:
      return region_rows(report["regions"]);
    case View::memory:
      return memory_table(report["memory"]);
    case View::threads:
      return grouped ? group_rows(report["groups"]) : thread_rows(report["threads"]);
    case View::source:
    case View::assembly:
      break;  // text alone
  }
  return table;
}

/// A report with a row in each list, for the columns of tables that have none.
Json example(View view, const attribution::Grouping* groups) {
  attribution::Analysis analysis;
  analysis.communication.cells.emplace_back();
  analysis.communication.lines.emplace_back().cells.emplace_back();
  analysis.communication.objects.emplace_back().cells.emplace_back();
  analysis.loops.emplace_back();
  analysis.threads.emplace_back();
  analysis.regions.emplace_back().threads.emplace_back();
  attribution::Grouping grouping;
  if (groups != nullptr) {
    grouping.by = groups->by;
    grouping.groups.emplace_back();
    grouping.cells.emplace_back();
  }
  return report_document(analysis, view, groups != nullptr ? &grouping : nullptr);
}

}  // namespace

std::string render_csv(const attribution::Analysis& analysis, View view, const attribution::Grouping* groups) {
  const CsvTable table = table_of(report_document(analysis, view, groups), view, groups != nullptr);
  return table.empty() ? table_of(example(view, groups), view, groups != nullptr).header() : table.text();
}

}  // namespace crosstalk::driver
