// SPDX-License-Identifier: Apache-2.0
#include "driver/text/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

constexpr int time_columns = 7;
constexpr int short_amount_columns = 7;
constexpr int who_columns = 13;
constexpr int loop_columns = 7;

/// Formats "0-2,5".
std::string numbers_text(const std::set<std::uint32_t>& numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::uint32_t first = *at;
    std::uint32_t last = first;
    while (++at != numbers.end() && *at == last + 1) {
      last = *at;
    }
    text += (text.empty() ? "" : ",") + std::to_string(first) +
            (last == first ? "" : (last == first + 1 ? "," : "-") + std::to_string(last));
  }
  return text;
}

/// Formats who waits for whom: "1 <- 0" if this line consumes, "0 -> 1" if it produces, "0 <-> 1" if both.
std::string who_text(const Canvas& canvas, const LineNote& note) {
  std::set<std::uint32_t> here;
  std::set<std::uint32_t> others;
  for (const attribution::Cell& cell : note.consumed) {
    here.insert(cell.consumer);
    others.insert(cell.producer);
  }
  for (const attribution::Cell& cell : note.produced) {
    here.insert(cell.producer);
    others.insert(cell.consumer);
  }
  if (here.empty()) {
    return {};
  }
  const char* const arrow = note.consumed.empty()   ? canvas.sign(" → ", " > ")
                            : note.produced.empty() ? canvas.sign(" ← ", " < ")
                                                    : canvas.sign(" ↔ ", " = ");
  return numbers_text(here) + arrow + numbers_text(others);
}

double cost_of(const LineNote& note) {
  return note.true_sharing.cost_s.value_or(0) + note.false_sharing.cost_s.value_or(0);
}

std::string short_gain(const Canvas& canvas, const attribution::Sum& sum) {
  const auto gain = said_gain(sum);
  return !gain               ? ""
         : gain->seconds > 0 ? (gain->at_most ? canvas.sign("≤", "<") : "") + short_seconds_text(gain->seconds)
                             : "none";
}

}  // namespace

FigureColumns figure_columns(const Canvas& canvas, int number, bool loop) {
  return {canvas.width() >= 80, canvas.width() >= 72, loop && canvas.width() >= 100, number};
}

int text_columns(const Canvas& canvas, const FigureColumns& columns) {
  return canvas.width() -
         (time_columns + 1 + short_amount_columns + 1 + (columns.gain ? short_amount_columns + 2 : 0) +
          (columns.who ? who_columns + 2 : 0) + (columns.loop ? loop_columns + 1 : 0) + columns.number + 2);
}

void Greatest::add(const LineNote& note) {
  share = std::max(share, note.share);
  cost_s = std::max(cost_s, cost_of(note));
}

std::string figures(const Canvas& canvas, const FigureColumns& columns, const LineNote* note, const Greatest& greatest,
                    const std::string& loop) {
  static const LineNote nothing;
  const LineNote& of = note == nullptr ? nothing : *note;
  const attribution::Sum sum = sum_of(of.true_sharing, of.false_sharing);
  const Exchanged amount = exchanged(of.consumed, true);
  std::string text =
      canvas.heated(canvas.right_cell(of.share > 0 ? percent_text(of.share) : "", time_columns),
                    heat_level(of.share, greatest.share), Hue::true_sharing) +
      " " +
      canvas.heated(canvas.right_cell(sum.cost_s > 0 ? short_seconds_text(sum.cost_s) : "", short_amount_columns),
                    heat_level(sum.cost_s, greatest.cost_s), sharing_hue(amount)) +
      " ";
  if (columns.gain) {
    text += canvas.right_cell(short_gain(canvas, sum), short_amount_columns + 1) + " ";
  }
  if (columns.who) {
    text += " " + canvas.cell(who_text(canvas, of), who_columns) + " ";
  }
  return columns.loop ? text + canvas.right_cell(loop, loop_columns) + " " : text;
}

void draw_figure_heads(Canvas& canvas, const FigureColumns& columns, const std::string& number) {
  canvas.line(canvas.colored(pad_left("time", time_columns) + " " + pad_left("cost", short_amount_columns) + " " +
                                 (columns.gain ? pad_left("gain", short_amount_columns + 1) + " " : "") +
                                 (columns.who ? " " + pad_right("threads", who_columns) + " " : "") +
                                 (columns.loop ? pad_left("loop", loop_columns) + " " : "") +
                                 pad_left(number, columns.number),
                             Hue::faint));
}

void draw_gap(Canvas& canvas, std::size_t count, const char* what) {
  canvas.line(canvas.colored(fmt::format("{}{} {}{}", canvas.sign("  ⋮ ", "  : "), count, what, count == 1 ? "" : "s"),
                             Hue::faint));
}

}  // namespace crosstalk::driver
