// SPDX-License-Identifier: Apache-2.0
#include "driver/csv/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/busy/loop_figures.h"
#include "attribution/counters/counter_rates.h"
#include "driver/terminal/layout.h"
#include "driver/words/names.h"

namespace crosstalk::driver {

namespace {

using attribution::Analysis;
using attribution::Cell;
using Fields = std::vector<std::string>;

std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string number(std::uint64_t value) { return std::to_string(value); }
template <class Value>
std::string known(const std::optional<Value>& value) {
  if constexpr (std::is_same_v<Value, double>) {
    return value ? number(*value) : "";
  } else {
    return value ? std::to_string(*value) : "";
  }
}
std::string known_line(std::uint32_t line) { return line == 0 ? "" : std::to_string(line); }

class Table {
 public:
  explicit Table(const Fields& header) { row(header); }
  void row(const Fields& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      text_ += (i == 0 ? "" : ",") + csv_field(fields[i]);
    }
    text_ += '\n';
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

Fields operator+(Fields left, const Fields& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Fields cell_header() {
  Fields header = {"producer", "consumer"};
  for (const std::string kind : {"true.", "false."}) {
    for (const char* const name :
         {"count", "count_ci95.low", "count_ci95.high", "count_unknown", "cost_s", "cost_ci95.low", "cost_ci95.high",
          "detections", "seen", "gain_s", "gain_ci95.low", "gain_ci95.high"}) {
      header.push_back(kind + name);
    }
  }
  return header;
}

Fields amount_fields(const attribution::Amount& amount) {
  const auto low = [](const auto& interval) { return interval ? number(interval->low) : std::string(); };
  const auto high = [](const auto& interval) { return interval ? number(interval->high) : std::string(); };
  return {known(amount.count),     low(amount.count_ci95),
          high(amount.count_ci95), amount.count ? std::string() : amount.count_unknown,
          known(amount.cost_s),    low(amount.cost_ci95),
          high(amount.cost_ci95),  number(amount.detections),
          number(amount.seen),     known(amount.gain_s),
          low(amount.gain_ci95),   high(amount.gain_ci95)};
}

Fields cell_fields(const Cell& cell) {
  return Fields{number(std::uint64_t{cell.producer}), number(std::uint64_t{cell.consumer})} +
         amount_fields(cell.true_sharing) + amount_fields(cell.false_sharing);
}

/// One row for each cell; a row without cells still shows once.
void rows_by_cell(Table& table, const Fields& before, const attribution::Matrix& cells) {
  if (cells.empty()) {
    table.row(before + Fields(cell_header().size()));
  }
  for (const Cell& cell : cells) {
    table.row(before + cell_fields(cell));
  }
}

std::string summary_table(const Analysis& analysis) {
  Table table({"name", "value"});
  const auto& sampling = analysis.sampling;
  table.row({"command", analysis.session.command});
  if (!analysis.filter.empty()) {
    table.row({"filter", analysis.filter});
  }
  table.row({"exit_status", known(analysis.session.exit_status)});
  table.row({"duration_s", number(analysis.duration_s)});
  table.row({"cpu_s", cpu_time_known(analysis) ? number(analysis.cpu_s) : ""});
  table.row({"threads", number(std::uint64_t{analysis.threads.size()})});
  table.row({"sampling.source", sampling.source});
  table.row({"sampling.method", sampling.method});
  table.row({"sampling.partner", sampling.partner});
  table.row({"sampling.estimator", sampling.estimator});
  table.row({"sampling.samples", number(sampling.samples)});
  table.row({"sampling.lost", number(sampling.lost)});
  table.row({"sampling.armed", number(sampling.armed)});
  table.row({"sampling.traps", number(sampling.traps)});
  table.row({"sampling.unknown_frames", known(sampling.unknown_frames)});
  const profile::SessionConfig& config = analysis.session.config;
  const auto of_recorder = [&](const char* name, std::string value) {
    table.row({name, sampling.settings_unknown.empty() ? std::move(value) : std::string()});
  };
  of_recorder("sampling.settings.period_s", number(static_cast<double>(config.period_ns) * 1e-9));
  of_recorder("sampling.settings.budget", number(config.budget));
  of_recorder("sampling.settings.watchpoints", number(std::uint64_t{config.watchpoints}));
  of_recorder("sampling.settings.board_slots", number(std::uint64_t{config.board_slots}));
  of_recorder("sampling.overhead.fraction", known(sampling.overhead_fraction));
  of_recorder("sampling.overhead.handlers_s", number(sampling.handlers_s));
  of_recorder("sampling.overhead.switches_s", number(sampling.switches_s));
  of_recorder("sampling.overhead.memory_bytes", number(sampling.memory_bytes));
  for (const attribution::Finding& finding : analysis.findings) {
    table.row({"finding", finding.sentence});
  }
  for (const attribution::Warning& warning : analysis.warnings) {
    table.row({"warning." + warning.code, warning.message});
  }
  return table.take();
}

std::string matrix_table(const attribution::Matrix& matrix) {
  Table table(cell_header());
  for (const Cell& cell : matrix) {
    table.row(cell_fields(cell));
  }
  return table.take();
}

/// Makes the matrix between groups; `within` is 1 if both threads (or processors) are in one group.
std::string matrix_table(const attribution::Grouping& grouping) {
  const Fields amounts = [] {
    const Fields header = cell_header();
    return Fields(header.begin() + 2, header.end());
  }();
  Table table(Fields{"producer", "consumer", "within"} + amounts);
  for (const Cell& cell : grouping.cells) {
    table.row(Fields{grouping.groups[cell.producer].name, grouping.groups[cell.consumer].name,
                     cell.producer == cell.consumer ? "1" : "0"} +
              amount_fields(cell.true_sharing) + amount_fields(cell.false_sharing));
  }
  return table.take();
}

std::string groups_table(const attribution::Grouping& grouping) {
  Table table({grouping.of_processors() ? "processors" : "threads", "name", "cpu_s", "samples", "kernel_share",
               "communication_s"});
  for (const attribution::Group& group : grouping.groups) {
    table.row({number(std::uint64_t{group.members.size()}), group.name, known(group.cpu_s), number(group.samples),
               known(group.kernel_share), known(group.communication_s)});
  }
  return table.take();
}

std::string lines_table(const Analysis& analysis) {
  Table table(Fields{"file", "line", "function", "role"} + cell_header());
  for (const attribution::LineRow& row : analysis.communication.lines) {
    rows_by_cell(table, {row.file, known_line(row.line), row.function, role_name(row.role)}, row.cells);
  }
  return table.take();
}

std::string objects_table(const Analysis& analysis) {
  Table table(Fields{"name", "kind", "size", "field", "allocated_at", "blocks"} + cell_header());
  for (const attribution::ObjectRow& row : analysis.communication.objects) {
    rows_by_cell(table,
                 {row.name, object_kind_name(row.kind), known(row.size), row.field, row.allocated_at,
                  row.blocks == 0 ? std::string() : std::to_string(row.blocks)},
                 row.cells);
  }
  return table.take();
}

/// Returns the counters' names, each once.
std::vector<std::string> counter_columns(const Analysis& analysis) {
  std::vector<std::string> names;
  for (const profile::CounterRow& row :
       analysis.counters ? analysis.counters->counters : std::vector<profile::CounterRow>()) {
    if (std::find(names.begin(), names.end(), row.name) == names.end()) {
      names.push_back(row.name);
    }
  }
  return names;
}

std::string counted(const attribution::LoopRow& row, const std::string& name) {
  if (row.figures && row.figures->counters) {
    for (const attribution::CountedRate& rate : row.figures->counters->rates) {
      if (rate.name == name) {
        return number(rate.per_s);
      }
    }
  }
  return "";
}

/// Returns one column name for each models::CycleClass.
Fields wait_columns(const std::string& before, const std::string& after) {
  Fields columns;
  for (std::size_t i = 0; i < models::cycle_classes; ++i) {
    columns.push_back(before + models::cycle_class_name(static_cast<models::CycleClass>(i)));
    columns.back() += after;
  }
  return columns;
}

Fields wait_fields(const models::CycleAccount& waits) {
  Fields fields;
  for (std::size_t i = 0; i < models::cycle_classes; ++i) {
    fields.push_back(known(waits[static_cast<models::CycleClass>(i)]));
  }
  return fields;
}

/// Returns the column names for unit figures and waits.
Fields figure_columns() {
  Fields columns;
  for (const models::Unit unit : models::all_units) {
    for (const char* const figure : {".seconds", ".of_effective", ".of_theoretical", ".per_s"}) {
      columns.push_back(std::string("busy.") + unit_name(unit) + figure);
    }
  }
  return columns + Fields{"busy.bytes_to_flops", "class"} + wait_columns("waits.", "") +
         Fields{"shape.threads", "shape.imbalance", "shape.simd_share", "shape.multiply_add_share"};
}

/// Returns the fields of a loop's figures; all empty if it has none.
Fields figure_fields(const attribution::LoopRow& row) {
  if (!row.figures) {
    return Fields(figure_columns().size());
  }
  const attribution::LoopFigures& figures = *row.figures;
  Fields fields;
  for (const models::Unit unit : models::all_units) {
    const models::BusyTime& time = figures.busy[unit];
    const auto& per_s = time.seconds ? figures.per_s[unit] : std::nullopt;
    fields = fields + Fields{known(time.seconds), known(time.of_effective), known(time.of_theoretical), known(per_s)};
  }
  const auto& which = figures.busy_class.which;
  return fields + Fields{known(figures.bytes_to_flops), which ? busy_class_name(*which) : ""} +
         wait_fields(figures.waits) +
         Fields{number(figures.threads), known(figures.imbalance), known(figures.packed), known(figures.multiply_adds)};
}

std::string loops_table(const Analysis& analysis) {
  const std::vector<std::string> counters = counter_columns(analysis);
  Fields columns({"id",
                  "parent",
                  "function",
                  "file",
                  "line_begin",
                  "line_end",
                  "depth",
                  "module",
                  "cpu_s",
                  "self_s",
                  "share",
                  "share_ci95.low",
                  "share_ci95.high",
                  "kernel_s",
                  "samples",
                  "iterations_per_s",
                  "instructions_per_s",
                  "flops_per_s",
                  "loads_per_s",
                  "stores_per_s",
                  "bytes_per_s"});
  columns = columns + figure_columns();
  for (const std::string& name : counters) {
    columns.push_back("counters." + name);
  }
  Table table(columns);
  const bool timed = analysis.shares_of.empty();
  for (const attribution::LoopRow& row : analysis.loops) {
    Fields cells({number(std::uint64_t{row.id}),
                  known(row.parent),
                  row.function,
                  row.file,
                  known_line(row.line_begin),
                  known_line(row.line_end),
                  number(std::uint64_t{row.depth}),
                  row.module,
                  timed ? number(row.cpu_s) : "",
                  timed ? number(row.self_s) : "",
                  number(row.share),
                  number(row.share_ci95.low),
                  number(row.share_ci95.high),
                  timed ? number(row.kernel_s) : "",
                  number(row.samples),
                  known(row.rates.iterations.per_s),
                  known(row.rates.instructions.per_s),
                  known(row.rates.flops.per_s),
                  known(row.rates.loads.per_s),
                  known(row.rates.stores.per_s),
                  known(row.rates.bytes.per_s)});
    cells = cells + figure_fields(row);
    for (const std::string& name : counters) {
      cells.push_back(counted(row, name));
    }
    table.row(cells);
  }
  return table.take();
}

/// A row for each region and thread that was in it.
std::string regions_table(const Analysis& analysis) {
  Table table(Fields{"region", "thread", "entries", "elapsed_s", "cpu_s", "cpu_low_s", "cpu_high_s", "samples"} +
              wait_columns("", "_s"));
  for (const attribution::RegionSummary& region : analysis.regions) {
    for (const attribution::RegionThread& thread : region.threads) {
      table.row(Fields{region.path, number(std::uint64_t{thread.thread}), number(thread.entries),
                       number(thread.elapsed_s), known(thread.cpu_s), thread.cpu_s ? number(thread.cpu_ci95.low) : "",
                       thread.cpu_s ? number(thread.cpu_ci95.high) : "", number(thread.samples)} +
                wait_fields(thread.waits));
    }
  }
  return table.take();
}

std::string threads_table(const Analysis& analysis) {
  const Fields waits = wait_columns("waits.", "");
  Table table(Fields{"index", "pid", "tid", "name", "cpu_s", "samples", "kernel_share", "communication_s"} + waits);
  for (const attribution::ThreadSummary& thread : analysis.threads) {
    if (!thread.listed) {
      continue;
    }
    table.row(Fields{number(std::uint64_t{thread.index}), std::to_string(thread.pid), std::to_string(thread.tid),
                     thread.name, known(thread.cpu_s), number(thread.samples), known(thread.kernel_share),
                     known(thread.communication_s)} +
              (thread.waits ? wait_fields(*thread.waits) : Fields(waits.size())));
  }
  return table.take();
}

}  // namespace

namespace {

/// True if the bytes at `at` are a control character beyond ASCII (U+0080..U+009F) in UTF-8.
bool is_high_control(const std::string& text, std::size_t at) {
  return at + 1 < text.size() && text[at] == '\xc2' && static_cast<unsigned char>(text[at + 1]) >= 0x80 &&
         static_cast<unsigned char>(text[at + 1]) < 0xa0;
}

/// Replaces control characters by \xNN, except for line breaks and tabs.
std::string without_controls(const std::string& text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool low = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
    if (is_high_control(text, i)) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else {
      shown += low ? fmt::format("\\x{:02x}", byte) : std::string(1, text[i]);
    }
  }
  return shown;
}

/// True if a spreadsheet would compute the text instead of showing it: a program's name could inject a formula.
bool is_formula(const std::string& text) {
  if (text.empty() || std::string_view("=+-@").find(text.front()) == std::string_view::npos) {
    return false;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc{} || end != text.data() + text.size();
}

}  // namespace

std::string csv_field(const std::string& text) {
  std::string shown = (is_formula(text) ? "'" : "") + without_controls(as_utf8(text));
  if (shown.find_first_of(",\"\n") == std::string::npos) {
    return shown;
  }
  std::string quoted = "\"";
  for (const char c : shown) {
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return quoted + "\"";
}

std::string render_csv(const Analysis& analysis, View view, const attribution::Grouping* groups) {
  switch (view) {
    case View::summary:
      return summary_table(analysis);
    case View::matrix:
      return groups != nullptr ? matrix_table(*groups) : matrix_table(analysis.communication.cells);
    case View::lines:
      return lines_table(analysis);
    case View::objects:
      return objects_table(analysis);
    case View::loops:
    case View::busy:  // the same rows: these figures are among theirs
      return loops_table(analysis);
    case View::regions:
      return regions_table(analysis);
    case View::memory:
      return memory_csv(analysis.memory);
    case View::source:
    case View::assembly:
      break;  // text alone
    case View::threads:
      return groups != nullptr ? groups_table(*groups) : threads_table(analysis);
  }
  return {};
}

}  // namespace crosstalk::driver
