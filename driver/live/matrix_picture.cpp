// SPDX-License-Identifier: Apache-2.0
// Draws the communication between threads as a heat map: rows produce, columns consume.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "driver/live/picture_parts.h"

namespace crosstalk::driver::live {
namespace {

constexpr int most_label = 20;
constexpr int processor_columns = 7;
constexpr int value_columns = 6;       // " 41.2 "
constexpr int wide_shade_columns = 3;  // the third keeps the numbers apart
constexpr int shade_columns = 2;

using Pair = std::pair<std::uint32_t, std::uint32_t>;

struct Heat {
  std::optional<double> part;  // of all CPU time; absent: not known
  std::uint64_t seen = 0;
  bool is_false = false, present = true;
};

/// The places of the threads on the screen.
struct Grid {
  std::vector<const ThreadRow*> threads;
  std::map<Pair, Heat> heats;
  double greatest = 0;
  int label = 0, cell = value_columns;
  std::size_t rows = 0, columns = 0;            // that fit
  std::size_t first_row = 0, first_column = 0;  // of threads
};

std::size_t place_of(const Grid& grid, std::uint32_t thread) {
  const auto found = std::ranges::find_if(grid.threads, [&](const ThreadRow* row) { return row->index == thread; });
  return static_cast<std::size_t>(found - grid.threads.begin());
}

bool in_scope(const Scope& scope, const CellRow& cell) {
  return (!scope.pair || *scope.pair == Pair(cell.producer, cell.consumer)) &&
         (!scope.thread || *scope.thread == cell.producer || *scope.thread == cell.consumer);
}

Grid grid_of(const Snapshot& snapshot, const MatrixView& view, int width) {
  Grid grid;
  grid.threads = matrix_threads(snapshot, view.scope);
  for (const CellRow& cell : snapshot.cells) {
    if (!in_scope(view.scope, cell)) {
      continue;
    }
    const Part part = part_of(snapshot, cell.exchange.cost_s, cell.exchange.latest_cost_s);
    grid.heats[{cell.producer, cell.consumer}] = {part.favoured, cell.exchange.seen,
                                                  cell.false_cost_s.value_or(0) > cell.true_cost_s.value_or(0),
                                                  cell.exchange.latest_seen > 0 || part.now.value_or(0) > 0};
    grid.greatest = std::max(grid.greatest, part.favoured.value_or(0));
  }
  grid.label = 8;
  for (const ThreadRow* thread : grid.threads) {
    grid.label = std::max(grid.label, display_width(thread_label(snapshot, thread->index)));
  }
  grid.label = std::min(grid.label, most_label);
  const int room = width - 2 * margin - grid.label - processor_columns - 2;
  const auto count = static_cast<int>(grid.threads.size());
  grid.cell = count * value_columns <= room        ? value_columns
              : count * wide_shade_columns <= room ? wide_shade_columns
                                                   : shade_columns;
  grid.columns = static_cast<std::size_t>(std::min(count, std::max(1, room / grid.cell)));
  grid.rows = static_cast<std::size_t>(std::min(count, std::max(1, view.most_rows)));
  if (view.chosen) {  // the chosen cell is to be seen
    const auto first = [](std::size_t at, std::size_t fits) { return at >= fits ? at - fits + 1 : 0; };
    grid.first_row = first(place_of(grid, view.chosen->first), grid.rows);
    grid.first_column = first(place_of(grid, view.chosen->second), grid.columns);
  }
  return grid;
}

std::string value_text(const Heat& heat) {
  if (!heat.part || (*heat.part <= 0 && heat.seen > 0)) {
    return heat.seen > 0 ? "seen" : "?";
  }
  const double percent = *heat.part * 100;
  return percent < 0.05 ? "<0.1" : percent < 99.95 ? fmt::format("{:.1f}", percent) : "100";
}

void draw_cell(CellBuffer& cells, int row, int column, const Grid& grid, const Heat* heat, bool color) {
  const int level = heat == nullptr ? 0 : std::max(heat_level(heat->part.value_or(0), grid.greatest), 1);
  const bool present = heat != nullptr && heat->present;
  if (grid.cell == value_columns) {
    const std::string text = heat == nullptr ? cells.sign("·", ".") : value_text(*heat);
    const Ink ink = !present ? Ink::faint : color ? heat_ink(level, heat->is_false) : Ink::plain;
    cells.put_right(row, column, text + " ", value_columns, ink);
    return;
  }
  static constexpr const char* fine[] = {" ", "·", "░", "▒", "▓", "█"};
  static constexpr const char* plain[] = {" ", ".", "-", "+", "*", "#"};
  const char* const shade = cells.sign(fine[level], plain[level]);
  column += grid.cell - shade_columns;
  if (color && present) {
    cells.put(row, column, "  ", heat_ink(level, heat->is_false));
  } else {
    cells.put(row, column, std::string(shade) + shade, heat != nullptr && !present ? Ink::faint : Ink::plain);
  }
}

/// The threads' numbers above the columns.
void draw_heads(CellBuffer& cells, int row, int column, const Grid& grid, const MatrixView& view) {
  for (std::size_t i = 0; i < grid.columns; ++i) {
    const std::uint32_t index = grid.threads[grid.first_column + i]->index;
    const Ink ink = view.chosen && view.chosen->second == index ? Ink::chosen : Ink::faint;
    if (grid.cell == value_columns) {
      cells.put_right(row, column, fmt::format("{} ", index), grid.cell, ink);
    } else if (grid.cell == wide_shade_columns || i % 2 == 0) {  // each second one, else they touch
      cells.put_right(row, column, std::to_string(index % 100), grid.cell, ink);
    }
    column += grid.cell;
  }
}

void draw_thread(CellBuffer& cells, int row, const Grid& grid, const Snapshot& snapshot, const ThreadRow& thread,
                 const MatrixView& view) {
  const bool chosen = view.chosen && view.chosen->first == thread.index;
  int column =
      cells.put_left(row, margin, thread_label(snapshot, thread.index), grid.label, chosen ? Ink::chosen : Ink::plain);
  const std::optional<double> used = thread.latest_cpu_s && snapshot.latest_s > 0
                                         ? std::optional(*thread.latest_cpu_s / snapshot.latest_s)
                                         : std::nullopt;
  column =
      cells.put_right(row, column, used ? fmt::format("{:.0f} %", *used * 100) : "-", processor_columns, Ink::faint);
  column += 2;
  for (std::size_t i = 0; i < grid.columns; ++i) {
    const std::uint32_t consumer = grid.threads[grid.first_column + i]->index;
    const auto heat = grid.heats.find({thread.index, consumer});
    draw_cell(cells, row, column, grid, heat == grid.heats.end() ? nullptr : &heat->second, view.color);
    if (view.chosen == std::optional(Pair(thread.index, consumer))) {
      cells.paint(row, column, column + grid.cell, Ink::chosen);
    }
    column += grid.cell;
  }
}

}  // namespace

int draw_matrix(CellBuffer& cells, int row, const Snapshot& snapshot, const MatrixView& view) {
  const Grid grid = grid_of(snapshot, view, cells.columns());
  int column = cells.put(row, margin, "Who talks to whom", Ink::title);
  column = cells.put(row, column, "  row to column, % of CPU time: ", Ink::faint);
  column = cells.put(row, column, "true", Ink::true_sharing);
  column = cells.put(row, column, " and ", Ink::faint);
  column = cells.put(row, column, "false", Ink::false_sharing);
  column = cells.put(row, column, " sharing", Ink::faint);
  if (const std::size_t shown = std::min(grid.rows, grid.columns); shown < grid.threads.size()) {
    cells.put_right(row, column + 1, fmt::format("{} of {}", shown, grid.threads.size()),
                    cells.columns() - column - 1 - margin, Ink::faint);
  }
  ++row;
  if (grid.threads.empty()) {
    cells.put(row, margin + 1, "no thread is known", Ink::faint);
    return row + 2;
  }
  column = cells.put_left(row, margin, "producer", grid.label, Ink::faint);
  column = cells.put_right(row, column, "now", processor_columns, Ink::faint) + 2;
  draw_heads(cells, row, column, grid, view);
  ++row;
  for (std::size_t i = 0; i < grid.rows; ++i) {
    draw_thread(cells, row++, grid, snapshot, *grid.threads[grid.first_row + i], view);
  }
  return row;
}

}  // namespace crosstalk::driver::live
