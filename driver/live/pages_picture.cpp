// SPDX-License-Identifier: Apache-2.0
// The pages behind the tables: a source file with its costs, a finding, the warnings, the keys.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "driver/live/picture_parts.h"

namespace crosstalk::driver::live {
namespace {

constexpr int number_columns = 6;  // of a line

/// The figures of one line of the file.
struct LineFigures {
  double time = 0, cost = 0, gain = 0;  // parts of all CPU time
  bool stores = false;                  // what others wait for
};

using FileFigures = std::map<std::uint32_t, LineFigures>;

FileFigures figures_of(const Snapshot& snapshot, const std::string& file) {
  FileFigures figures;
  const double all_s = snapshot.cpu_s.value_or(0);
  for (const CodeRow& row : snapshot.code) {
    if (row.file == file && row.line != 0 && all_s > 0) {
      figures[row.line].time += row.self_s.value_or(0) / all_s;
    }
  }
  for (const LineRow& row : snapshot.lines) {
    if (row.file != file || row.line == 0) {
      continue;
    }
    LineFigures& line = figures[row.line];
    if (row.role == "producer") {
      line.stores = true;
      continue;
    }
    const double cost = part_of(snapshot, row.exchange.cost_s, row.exchange.latest_cost_s).favoured.value_or(0);
    line.cost += cost;
    line.gain +=
        row.exchange.cost_s.value_or(0) > 0 ? cost * row.exchange.gain_s.value_or(0) / *row.exchange.cost_s : 0;
  }
  return figures;
}

std::string figure_text(double part) { return part > 0 ? part_text(part) : ""; }

int draw_source_heads(CellBuffer& cells, int row, const PlaceRow& place, bool here) {
  const std::string path = std::filesystem::path(place.file).lexically_normal().string();
  cells.put_left(row++, margin, path, cells.columns() - 2 * margin, Ink::title);
  if (!here) {
    cells.put(row++, margin + 1, "The source is not here: only lines with figures are listed.", Ink::faint);
  }
  int column = margin;
  for (const char* const head : {"time", "cost", "gain"}) {
    column = cells.put_right(row, column, head, figure_columns, Ink::faint);
  }
  cells.put_right(row, column, "line", number_columns, Ink::faint);
  return row + 1;
}

/// One line of the file; `stores`: others wait for what it stores.
void draw_source_line(CellBuffer& cells, int row, std::uint32_t number, const LineFigures* figures,
                      const std::string& text, bool chosen) {
  int column = margin;
  if (figures != nullptr) {
    cells.put_right(row, column, figure_text(figures->time), figure_columns);
    cells.put_right(row, column + figure_columns, figure_text(figures->cost), figure_columns, Ink::strong);
    cells.put_right(row, column + 2 * figure_columns, figure_text(figures->gain), figure_columns);
  }
  column += 3 * figure_columns;
  column = cells.put_right(row, column, std::to_string(number), number_columns, Ink::faint);
  column = cells.put(row, column, figures != nullptr && figures->stores ? " s " : "   ", Ink::false_sharing);
  cells.put(row, column, text, Ink::plain, cells.columns() - margin);
  if (chosen) {
    cells.paint(row, 0, cells.columns(), Ink::chosen);
  }
}

/// The lines of the file that there is anything to show of.
std::vector<std::uint32_t> numbers_of(const FileFigures& figures, const std::optional<std::vector<std::string>>& text) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t line = 1; text && line <= text->size(); ++line) {
    numbers.push_back(line);
  }
  for (const auto& [line, of_line] : figures) {
    if (!text || line > text->size()) {
      numbers.push_back(line);
    }
  }
  return numbers;
}

struct HelpLine {
  const char *keys, *what;
};
constexpr std::array<HelpLine, 19> help_lines = {{
    {"1-5, Tab", "the table; arrows, Page Up and Down, Home and End move in it"},
    {"Enter", "open: an object's lines, the source of a line or loop, a thread,"},
    {"", "a finding; in the matrix: what the two threads of a cell exchange"},
    {"Esc", "back"},
    {"m", "to the matrix, where arrows choose a cell, and back"},
    {"s", "sort by the next column"},
    {"/", "show only rows that have a text; an empty one shows all"},
    {"t", "show only what concerns one thread; again: all"},
    {"p, space", "pause, and go on"},
    {"w", "warnings: what is not known, and why"},
    {"q", "quit; a command that was started here is told to end"},
    {"", ""},
    {"cost", "time of accesses to lines that another thread stored to: part of"},
    {"", "all CPU time, the mean of the latest refresh and the whole window"},
    {"now", "the same in the latest refresh alone; faint rows have nothing now"},
    {"gain", "part of the cost that lines which no longer move would save"},
    {"true", "sharing (blue): the consumer uses what the producer stored"},
    {"false", "sharing (orange): it uses other bytes; separate lines end that"},
    {"seen", "communications whose cost is not known; more: man crosstalk-top"},
}};

}  // namespace

void draw_source_page(CellBuffer& cells, int row, int end, ViewState& state) {
  const Page& page = state.page();
  const FileFigures figures = state.snapshot() ? figures_of(*state.snapshot(), page.place.file) : FileFigures();
  row = draw_source_heads(cells, row, page.place, state.source().has_value());
  const std::vector<std::uint32_t> numbers = numbers_of(figures, state.source());
  const int room = std::max(end - row, 1);
  state.set_lines(numbers.empty() ? 1 : numbers.back());
  state.set_room(static_cast<std::size_t>(room));
  const auto chosen = std::ranges::lower_bound(numbers, static_cast<std::uint32_t>(page.first));
  const auto at = static_cast<std::ptrdiff_t>(chosen - numbers.begin());
  const auto last = std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(numbers.size()) - room, 0);
  auto number = numbers.begin() + std::clamp<std::ptrdiff_t>(at - room / 2, 0, last);
  for (; number != numbers.end() && row < end; ++number) {
    const auto of_line = figures.find(*number);
    const bool known = state.source() && *number <= state.source()->size();
    draw_source_line(cells, row++, *number, of_line == figures.end() ? nullptr : &of_line->second,
                     known ? (*state.source())[*number - 1] : "", *number == page.first);
  }
}

void draw_finding_page(CellBuffer& cells, int row, int end, ViewState& state) {
  const FindingRow& finding = state.page().finding;
  cells.put(row, margin, "Finding", Ink::title);
  row = draw_paragraph(cells, row + 1, margin + 1, finding.sentence, end) + 1;
  const auto fact = [&](const char* what, const std::string& text) {
    if (!text.empty() && row < end) {
      cells.put(row, margin + 1, what, Ink::faint);
      row = draw_paragraph(cells, row, margin + 12, text, end);
    }
  };
  fact("object", finding.object);
  fact("stored at", finding.producer);
  fact("used at", finding.consumer);
  fact("advice", finding.advice);
  state.set_lines(1);
}

void draw_warnings_page(CellBuffer& cells, int row, int end, ViewState& state) {
  cells.put(row++, margin, "Warnings", Ink::title);
  const auto& warnings = state.snapshot() ? state.snapshot()->warnings : std::vector<WarningRow>();
  if (warnings.empty()) {
    cells.put(row, margin + 1, "There is none.", Ink::faint);
  }
  state.set_lines(warnings.size());
  state.set_room(1);
  for (std::size_t i = state.page().first; i < warnings.size() && row < end; ++i) {
    cells.put(row, margin + 1, cells.sign("•", "*"));
    row = draw_paragraph(cells, row, margin + 3, warnings[i].message, end);
  }
}

void draw_help_page(CellBuffer& cells, int row, int end, ViewState& state) {
  const int room = std::max(end - row, 1);
  state.set_lines(help_lines.size());
  state.set_room(static_cast<std::size_t>(room));
  for (std::size_t i = state.page().first; i < help_lines.size() && row < end; ++i, ++row) {
    cells.put(row, margin, help_lines[i].keys, Ink::strong);
    cells.put(row, margin + 10, help_lines[i].what, Ink::plain, cells.columns() - margin);
  }
}

}  // namespace crosstalk::driver::live
