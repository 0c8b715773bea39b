// SPDX-License-Identifier: Apache-2.0
#include "driver/live/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "driver/live/picture_parts.h"

namespace crosstalk::driver::live {
namespace {

std::string state_text(const ViewState& state) {
  if (state.ended()) {
    return "ended";
  }
  if (state.paused()) {
    return "paused";
  }
  return state.snapshot() ? "" : "measuring";
}

/// The names of the tables, the present one marked; on the right what restricts it.
int draw_tabs(CellBuffer& cells, int row, const ViewState& state) {
  const Page& page = state.page();
  int column = margin;
  for (std::size_t table = 0; table < table_count; ++table) {
    const bool present = page.kind == PageKind::tables && static_cast<std::size_t>(page.table) == table;
    column = cells.put(row, column, fmt::format(" {} {} ", table + 1, table_names[table]),
                       present ? Ink::chosen : Ink::faint);
  }
  std::string limits;
  const auto add = [&](const std::string& text) { limits += (limits.empty() ? "" : "  ") + text; };
  if (page.scope.pair) {
    add(thread_label(*state.snapshot(), page.scope.pair->first) + cells.sign(" → ", " -> ") +
        thread_label(*state.snapshot(), page.scope.pair->second));
  }
  if (page.scope.thread) {
    add("thread " + thread_label(*state.snapshot(), *page.scope.thread));
  }
  if (!page.scope.object.empty()) {
    add(page.scope.object);
  }
  if (!state.filter().empty()) {
    add("/" + state.filter());
  }
  cells.put_right(row, column + 1, limits, cells.columns() - column - 1 - margin, Ink::strong);
  return row + 1;
}

void draw_tables(CellBuffer& cells, int row, int end, ViewState& state, bool color) {
  const Snapshot& snapshot = *state.snapshot();
  const Page& page = state.page();
  const int room = end - row - matrix_heads - 3;  // behind the heads of both, and the tabs
  const auto threads = static_cast<int>(matrix_threads(snapshot, page.scope).size());
  const int for_matrix = std::clamp(threads, 1, std::max(3, room / 2));
  const bool in_matrix = page.focus == Focus::matrix;
  row = draw_matrix(cells, row, snapshot, {page.scope, in_matrix ? state.cell() : std::nullopt, for_matrix, color});
  row = draw_tabs(cells, row + 1, state);
  const std::vector<Row> rows = state.rows();
  const int most_rows = end - row - 1;
  state.set_room(static_cast<std::size_t>(std::max(in_matrix ? for_matrix : most_rows, 1)));
  draw_table(cells, row, snapshot, rows,
             {page.table, state.sort(), in_matrix || rows.empty() ? std::nullopt : std::optional(state.chosen(rows)),
              most_rows});
}

void draw_foot(CellBuffer& cells, const ViewState& state) {
  const int row = cells.rows() - 1;
  const Page& page = state.page();
  if (state.prompt() != Prompt::none) {
    const char* const what = state.prompt() == Prompt::filter ? "show only rows with: " : "show only the thread: ";
    const int column = cells.put(row, margin, what + state.typed(), Ink::strong);
    cells.put(row, column, cells.sign("█", "_"), Ink::strong);
    return;
  }
  if (!state.remark().empty() || !state.why_ended().empty()) {
    cells.put(row, margin, state.remark().empty() ? state.why_ended() : state.remark(), Ink::warning);
    return;
  }
  std::string keys;
  if (page.kind != PageKind::tables) {
    keys = "Esc back  " + std::string(cells.sign("↑↓", "Up/Down")) + " scroll  1-5 tables  h help  q quit";
  } else if (page.focus == Focus::matrix) {
    keys = std::string(cells.sign("←↑↓→", "arrows")) +
           " cell  Enter what they exchange  t thread  m table  h help  q quit";
  } else {
    keys = std::string("1-5 table  ") + cells.sign("↑↓", "arrows") +
           " row  Enter open  m matrix  s sort  / filter  h help  q quit";
  }
  cells.put(row, margin, keys, Ink::faint);
}

/// Until the first picture.
void draw_measuring(CellBuffer& cells, const ViewState& state) {
  cells.paint(0, 0, cells.columns(), Ink::bar);
  cells.put(0, margin, "crosstalk top", Ink::bar);
  if (!state.ended()) {
    cells.put(cells.rows() / 2, margin + 1, "measuring: the first picture comes in a second", Ink::plain);
  }
}

CellBuffer too_small(int rows, int columns, Charset charset) {
  CellBuffer cells(rows, columns, charset);
  draw_paragraph(
      cells, 0, 0,
      fmt::format("The terminal has {} x {}: {} x {} are needed. q quits.", columns, rows, least_columns, least_rows),
      rows);
  return cells;
}

}  // namespace

CellBuffer picture_of(ViewState& state, int rows, int columns, Charset charset, bool color) {
  if (rows < least_rows || columns < least_columns) {
    state.leave_prompt();  // else the key that ends the view would be typed into it
    return too_small(rows, columns, charset);
  }
  CellBuffer cells(rows, columns, charset);
  const int end = rows - 1;
  const PageKind kind = state.page().kind;
  int row = 0;
  if (state.snapshot()) {
    const std::string text = state_text(state);
    row = draw_head(cells, row, *state.snapshot(), text, Ink::bar) + 1;
  } else {
    draw_measuring(cells, state);
    row = 2;
  }
  switch (kind) {
    case PageKind::tables:
      if (state.snapshot()) {
        draw_tables(cells, row, end, state, color);
      }
      break;
    case PageKind::source:
      draw_source_page(cells, row, end, state);
      break;
    case PageKind::finding:
      draw_finding_page(cells, row, end, state);
      break;
    case PageKind::warnings:
      draw_warnings_page(cells, row, end, state);
      break;
    case PageKind::help:
      draw_help_page(cells, row, end, state);
      break;
  }
  draw_foot(cells, state);
  return cells;
}

CellBuffer page_of(const Snapshot& snapshot, int columns, Charset charset, bool color) {
  constexpr int most_threads = 24;
  constexpr std::size_t most_rows = 12;
  constexpr int enough_rows = 400;
  CellBuffer cells(enough_rows, columns, charset);
  int row = draw_head(cells, 0, snapshot, "", Ink::strong) + 1;
  const Scope all;
  row = draw_matrix(cells, row, snapshot, {all, std::nullopt, most_threads, color});
  for (const Table table : {Table::objects, Table::lines, Table::loops, Table::threads}) {
    const std::vector<Row> rows = rows_of(snapshot, table, all, "", Sort::cost);
    cells.put(row + 1, margin, table_names[static_cast<std::size_t>(table)], Ink::title);
    const int most = static_cast<int>(std::min(most_rows, std::max<std::size_t>(rows.size(), 1)));
    row = draw_table(cells, row + 2, snapshot, rows, {table, Sort::cost, std::nullopt, most});
  }
  cells.put(++row, margin, "Findings", Ink::title);
  ++row;
  for (const FindingRow& finding : snapshot.findings) {
    cells.put(row, margin + 1, cells.sign("•", "*"));
    row = draw_paragraph(cells, row, margin + 3, finding.sentence, enough_rows);
  }
  if (!snapshot.warnings.empty()) {
    cells.put(++row, margin, "Warnings", Ink::title);
    ++row;
  }
  for (const WarningRow& warning : snapshot.warnings) {
    cells.put(row, margin + 1, cells.sign("•", "*"));
    row = draw_paragraph(cells, row, margin + 3, warning.message, enough_rows);
  }
  return cells;
}

}  // namespace crosstalk::driver::live
