// SPDX-License-Identifier: Apache-2.0
// The parts of the picture: each draws below `row`, and returns the row behind it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/live/cell_buffer.h"
#include "driver/live/view_state.h"

namespace crosstalk::driver::live {

inline constexpr int margin = 1;          // columns at both sides
inline constexpr int figure_columns = 9;  // "< 0.1 %" and what keeps columns apart

/// "41.2 %"; "< 0.1 %"; "-": not known.
[[nodiscard]] std::string part_text(const std::optional<double>& part);

/// Three rows: the command, what it uses and what watching takes, and what is watched.
int draw_head(CellBuffer& cells, int row, const Snapshot& snapshot, const std::string& state, Ink ink);

struct MatrixView {
  const Scope& scope;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> chosen;  // cell; absent: the arrows move elsewhere
  int most_rows = 0;                                              // of threads
  bool color = true;
};
/// The heat map of threads: two rows of heads, then a row for each thread that fits.
int draw_matrix(CellBuffer& cells, int row, const Snapshot& snapshot, const MatrixView& view);
/// The rows that draw_matrix() takes at least.
inline constexpr int matrix_heads = 2;

struct TableView {
  Table table = Table::objects;
  Sort sort = Sort::cost;
  std::optional<std::size_t> chosen;  // index of a row
  int most_rows = 0;                  // below the heads
};
/// The heads of the columns, then rows from the first that shows the chosen one.
int draw_table(CellBuffer& cells, int row, const Snapshot& snapshot, const std::vector<Row>& rows,
               const TableView& view);

/// Writes `text` as sentences, broken between words, up to the row `end`.
int draw_paragraph(CellBuffer& cells, int row, int column, const std::string& text, int end, Ink ink = Ink::plain);

// Pages in the place of the tables, up to the row `end`. They tell `state` how much there is to scroll.
void draw_source_page(CellBuffer& cells, int row, int end, ViewState& state);
void draw_finding_page(CellBuffer& cells, int row, int end, ViewState& state);
void draw_warnings_page(CellBuffer& cells, int row, int end, ViewState& state);
void draw_help_page(CellBuffer& cells, int row, int end, ViewState& state);

}  // namespace crosstalk::driver::live
