// SPDX-License-Identifier: Apache-2.0
// The head of the picture, and what its parts share.
#include <fmt/format.h>

#include <algorithm>

#include "attribution/program/program_names.h"
#include "driver/live/picture_parts.h"

namespace crosstalk::driver::live {
namespace {

std::string number_text(const std::optional<double>& value) { return value ? fmt::format("{:.2f}", *value) : "-"; }

/// "overhead 1.1 % of at most 3 %".
std::string overhead_text(const Overhead& overhead) {
  std::string text = "overhead " + (overhead.fraction ? part_text(overhead.fraction) : "not known");
  if (overhead.budget) {
    text += fmt::format(" of {:.3g} %", *overhead.budget * 100);
  }
  return text;
}

std::string losses_text(const Losses& losses) {
  std::string text = "lost " + std::to_string(losses.records);
  if (losses.unread_threads != 0) {
    text += fmt::format(", {} threads unwatched", losses.unread_threads);
  }
  return text;
}

}  // namespace

std::string part_text(const std::optional<double>& part) { return part ? percent_text(*part) : "-"; }

int draw_head(CellBuffer& cells, int row, const Snapshot& snapshot, const std::string& state, Ink ink) {
  const int width = cells.columns();
  std::string right = state;
  if (ink == Ink::bar && !snapshot.warnings.empty()) {
    right = fmt::format("{} warning{}: w{}{}", snapshot.warnings.size(), snapshot.warnings.size() == 1 ? "" : "s",
                        state.empty() ? "" : "  ", state);
  }
  const int right_columns = right.empty() ? 0 : display_width(right) + 2 * margin;
  cells.paint(row, 0, width, ink);
  const int column = cells.put(row, margin, "crosstalk top  ", ink);
  const std::string arguments = attribution::arguments_of(snapshot.command);
  cells.put_left(row, column, attribution::program_of(snapshot.command) + (arguments.empty() ? "" : " ") + arguments,
                 width - column - right_columns - margin, ink);
  cells.put_right(row, width - right_columns, right, right_columns - margin, ink);
  ++row;
  const std::string gap = cells.sign(" │ ", " | ");
  std::string facts =
      "processors " + number_text(snapshot.processors) + ", now " + number_text(snapshot.latest_processors);
  facts += gap + overhead_text(snapshot.overhead) + gap + losses_text(snapshot.losses);
  facts += gap + snapshot.method + ", " + snapshot.source;
  cells.put(row, margin, facts, Ink::plain, width - margin);
  ++row;
  const std::string watching = fmt::format("last {:.1f} s: ", snapshot.window_s) + snapshot.watching;
  cells.put(row, margin, fit_end(clean(watching, cells.charset()), width - 2 * margin, cells.charset()), Ink::faint);
  return row + 1;
}

int draw_paragraph(CellBuffer& cells, int row, int column, const std::string& text, int end, Ink ink) {
  const int room = std::max(10, cells.columns() - column - margin);
  for (const std::string& line : wrapped(clean(text, cells.charset()), room, cells.charset())) {
    if (row < end) {
      cells.put(row, column, line, ink);
    }
    ++row;
  }
  return std::min(row, end);
}

}  // namespace crosstalk::driver::live
