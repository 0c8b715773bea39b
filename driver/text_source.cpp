// SPDX-License-Identifier: Apache-2.0
#include "driver/text_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "driver/text_report.h"

namespace crosstalk::driver {

namespace {

constexpr int time_columns = 7;
constexpr int amount_columns = 7;
constexpr int who_columns = 13;
constexpr int loop_columns = 7;

/// Narrow terminals have no room for all of it.
struct Columns {
  bool gain, who, loop;
  int number;  // of the line
};

Columns columns_of(const Canvas& canvas, std::uint32_t last_line) {
  return {canvas.width() >= 80, canvas.width() >= 72, canvas.width() >= 100,
          std::max(3, display_width(std::to_string(last_line)))};
}

int text_columns(const Canvas& canvas, const Columns& columns) {
  return canvas.width() -
         (time_columns + 1 + amount_columns + 1 + (columns.gain ? amount_columns + 2 : 0) +
          (columns.who ? who_columns + 2 : 0) + (columns.loop ? loop_columns + 1 : 0) + columns.number + 2);
}

/// "0-2,5"
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

/// Who waits here for whom ("1 <- 0"), who makes whom wait ("0 -> 1"), or both ("0,1").
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

/// The share of the loop that begins here, or how many loops the line is in.
std::string loop_text(const Canvas& canvas, const SourceNotes& notes, std::uint32_t line) {
  std::string inside;
  for (const attribution::LoopRow& loop : notes.loops) {
    if (loop.line_begin == line) {
      return percent_text(loop.share);
    }
    inside += loop.line_begin < line && line <= loop.line_end ? canvas.sign("│", "|") : "";
  }
  return inside;
}

struct Greatest {
  double share = 0, cost_s = 0;
};

double cost_of(const LineNote& note) {
  return note.true_sharing.cost_s.value_or(0) + note.false_sharing.cost_s.value_or(0);
}

std::string figures(const Canvas& canvas, const Columns& columns, const LineNote* note, const Greatest& greatest,
                    const std::string& loop) {
  static const LineNote nothing;
  const LineNote& of = note == nullptr ? nothing : *note;
  const attribution::Sum sum = sum_of(of.true_sharing, of.false_sharing);
  const Exchanged amount = exchanged(of.consumed, true);
  std::string text =
      canvas.heated(canvas.right_cell(of.share > 0 ? percent_text(of.share) : "", time_columns),
                    heat_level(of.share, greatest.share), Hue::true_sharing) +
      " " +
      canvas.heated(canvas.right_cell(sum.cost_s > 0 ? short_seconds_text(sum.cost_s) : "", amount_columns),
                    heat_level(sum.cost_s, greatest.cost_s), sharing_hue(amount)) +
      " ";
  if (columns.gain) {
    const bool known = sum.gain_s || sum.gain_ci95;
    const std::string gain = sum.gain_s ? short_seconds_text(*sum.gain_s)
                             : known    ? canvas.sign("≤", "<") + short_seconds_text(sum.gain_ci95->high)
                                        : "";
    text += canvas.right_cell(sum.cost_s > 0 ? gain : "", amount_columns + 1) + " ";
  }
  if (columns.who) {
    text += " " + canvas.cell(who_text(canvas, of), who_columns) + " ";
  }
  return columns.loop ? text + canvas.right_cell(loop, loop_columns) + " " : text;
}

/// Lines to show: those with figures and their neighbours, or those around the one asked for.
std::set<std::uint32_t> shown_lines(const SourceNotes& notes, std::uint32_t last, std::uint32_t wanted) {
  constexpr std::uint32_t around = 3;
  constexpr std::uint32_t around_wanted = 12;
  std::set<std::uint32_t> shown;
  const auto add = [&](std::uint32_t line, std::uint32_t reach) {
    for (std::uint32_t l = line > reach ? line - reach : 1; l <= std::min(last, line + reach); ++l) {
      shown.insert(l);
    }
  };
  if (wanted != 0) {
    add(wanted, around_wanted);
    return shown;
  }
  for (const auto& [line, note] : notes.lines) {
    add(line, around);
  }
  for (const attribution::LoopRow& loop : notes.loops) {
    add(loop.line_begin, 0);
  }
  return shown;
}

void draw_column_heads(Canvas& canvas, const Columns& columns) {
  canvas.line(canvas.colored(pad_left("time", time_columns) + " " + pad_left("cost", amount_columns) + " " +
                                 (columns.gain ? pad_left("gain", amount_columns + 1) + " " : "") +
                                 (columns.who ? " " + pad_right("threads", who_columns) + " " : "") +
                                 (columns.loop ? pad_left("loop", loop_columns) + " " : "") +
                                 pad_left("line", columns.number),
                             Hue::faint));
}

}  // namespace

std::string render_source(const attribution::Analysis& analysis, const SourceNotes& notes,
                          const std::optional<std::vector<std::string>>& text, std::uint32_t line, TextStyle style) {
  Canvas canvas(style);
  draw_head(canvas, analysis);
  const std::string path = std::filesystem::path(notes.file).lexically_normal().string();
  canvas.heading(fit_middle(canvas.clean(path), canvas.width(), style.charset));
  if (!text) {
    canvas.paragraph("  ",
                     "The source is not here, so only lines with figures are listed; --sysroot names the folder "
                     "that it lies under.");
  }
  const std::uint32_t last_noted = notes.lines.empty() ? 1 : notes.lines.rbegin()->first;
  const auto last = text ? static_cast<std::uint32_t>(text->size()) : last_noted;
  if (line > std::max(last, last_noted)) {
    canvas.paragraph("  ", fmt::format("There is no line {}: the file ends at {}.", line, last));
    return canvas.take();
  }
  Greatest greatest;
  for (const auto& [number, note] : notes.lines) {
    greatest.share = std::max(greatest.share, note.share);
    greatest.cost_s = std::max(greatest.cost_s, cost_of(note));
  }
  const Columns columns = columns_of(canvas, std::max(last, last_noted));
  draw_column_heads(canvas, columns);
  std::uint32_t before = 0;
  for (const std::uint32_t number : shown_lines(notes, std::max(last, last_noted), line)) {
    const auto note = notes.lines.find(number);
    if (!text && note == notes.lines.end()) {
      continue;
    }
    if (text && number > before + 1) {
      canvas.line(
          canvas.colored(fmt::format("{}{} lines", canvas.sign("  ⋮ ", "  : "), number - before - 1), Hue::faint));
    }
    before = number;
    const std::string source = text && number <= text->size() ? canvas.clean((*text)[number - 1]) : "";
    canvas.line(
        figures(canvas, columns, note == notes.lines.end() ? nullptr : &note->second, greatest,
                loop_text(canvas, notes, number)) +
        canvas.colored(pad_left(std::to_string(number), columns.number), number == line ? Hue::strong : Hue::faint) +
        (number == line ? "> " : "  ") + fit_end(source, text_columns(canvas, columns), style.charset));
  }
  if (text && last > before) {
    canvas.line(canvas.colored(fmt::format("{}{} lines", canvas.sign("  ⋮ ", "  : "), last - before), Hue::faint));
  }
  canvas.paragraph("",
                   "time, loop: shares of all CPU time; cost: of accesses that wait for another thread's store; gain: "
                   "what of it would be saved");
  return canvas.take();
}

}  // namespace crosstalk::driver
