// SPDX-License-Identifier: Apache-2.0
// Source lines that exchange cache lines: pairs for the summary; for the view, each end with its call paths.
#include <algorithm>
#include <string>

#include "attribution/advice.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

constexpr int line_amount_columns = 10;
constexpr int kind_columns = 6;

/// False on a narrow terminal, which has no room for the gain.
bool shows_gain(const Canvas& canvas) { return canvas.width() >= 80; }
int numbers_columns(const Canvas& canvas) { return (line_amount_columns + 2) * (shows_gain(canvas) ? 2 : 1); }

std::string amount_and_kind(const Canvas& canvas, const attribution::Matrix& cells, const attribution::Sum& sum) {
  const Exchanged amount = exchanged(cells, has_cost(cells));
  return "  " + canvas.right_cell(amount_text(cells), line_amount_columns) + "  " +
         (shows_gain(canvas) ? canvas.right_cell(gain_text(canvas, sum), line_amount_columns) + "  " : "") +
         canvas.colored(pad_right(sharing_word(amount), kind_columns), sharing_hue(amount));
}

void draw_call_paths(Canvas& canvas, const attribution::LineRow& row) {
  constexpr std::size_t most_paths = 3;
  for (std::size_t i = 0; i < std::min(most_paths, row.call_paths.size()); ++i) {
    if (row.call_paths[i].frames.size() > 1) {
      draw_call_path(canvas, row.call_paths[i]);
    }
  }
}

/// Formats one end of a pair; a library's line does not count as the user's place.
std::string end_cell(const Canvas& canvas, const std::string& function, const std::string& at, bool caller_known,
                     int columns) {
  return place_cell(canvas, function, caller_known ? at : "caller unknown", columns);
}

}  // namespace

void draw_line_pairs(Canvas& canvas, const attribution::Communication& communication, std::size_t most) {
  if (communication.line_pairs.empty()) {
    return;
  }
  canvas.heading("Source lines", "who stores, and who then accesses the same cache line");
  const int room = canvas.width() - numbers_columns(canvas) - kind_columns - 4 - 5 - 2;
  const int object = room / 4;
  const int end = (room - object) / 2;
  canvas.line(canvas.colored("  " + pad_left("cost", line_amount_columns) + "  " +
                                 (shows_gain(canvas) ? pad_left("gain", line_amount_columns) + "  " : "") +
                                 pad_right("kind", kind_columns) + "  " + pad_right("producer", end) + "     " +
                                 pad_right("consumer", end) + "  object",
                             Hue::faint));
  const std::size_t shown = std::min(most, communication.line_pairs.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const attribution::LinePair& pair = communication.line_pairs[i];
    canvas.line(amount_and_kind(canvas, pair.cells, advised_gain(communication, pair)) + "  " +
                end_cell(canvas, pair.producer_function, source_text(pair.producer_file, pair.producer_line),
                         pair.producer_caller_known, end) +
                canvas.sign("  →  ", "  ->  ") +
                end_cell(canvas, pair.consumer_function, source_text(pair.consumer_file, pair.consumer_line),
                         pair.consumer_caller_known, canvas.style().charset == Charset::utf8 ? end : end - 1) +
                "  " + canvas.cell(pair.object, object));
  }
  draw_more(canvas, communication.line_pairs.size(), shown, ": crosstalk report --view lines");
}

void draw_lines(Canvas& canvas, const attribution::Communication& communication, std::size_t most) {
  canvas.heading("Ends of communication", "source lines by role, with their call paths");
  if (communication.lines.empty()) {
    canvas.paragraph("  ", "No communicating source line is known.");
    return;
  }
  const std::size_t shown = std::min(most, communication.lines.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const attribution::LineRow& row = communication.lines[i];
    const bool stores = row.role == attribution::Role::producer;
    canvas.line(amount_and_kind(canvas, row.cells, sum_of(row.true_sharing, row.false_sharing)) + "  " +
                (stores ? "producer" : "consumer") + "  " +
                place_cell(canvas, row.function, source_text(row.file, row.line),
                           canvas.width() - numbers_columns(canvas) - 20));
    if (!row.through.empty()) {
      canvas.line(canvas.colored("      " + canvas.cell("in " + row.through, canvas.width() - 6), Hue::faint));
    }
    if (!row.caller_known) {
      canvas.line(canvas.colored("      " + canvas.cell("caller unknown: no stack copy shows it", canvas.width() - 6),
                                 Hue::faint));
    }
    draw_call_paths(canvas, row);
  }
}

}  // namespace crosstalk::driver
