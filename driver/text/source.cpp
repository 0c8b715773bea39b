// SPDX-License-Identifier: Apache-2.0
#include "driver/text/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "driver/text/figures.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

/// Formats the share of a loop that begins here, else the number of loops around the line.
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

/// Returns the lines to show: lines with figures and their neighbours, or lines around the wanted one.
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
  if (text && notes.written_later) {
    canvas.paragraph("  ",
                     "The source was written after the recording: figures stand beside the lines of that time, which "
                     "may have moved.");
  }
  const std::uint32_t last_noted = notes.lines.empty() ? 1 : notes.lines.rbegin()->first;
  const auto last = text ? static_cast<std::uint32_t>(text->size()) : last_noted;
  if (line > std::max(last, last_noted)) {
    canvas.paragraph("  ", fmt::format("There is no line {}: the file ends at {}.", line, last));
    return canvas.take();
  }
  Greatest greatest;
  for (const auto& [number, note] : notes.lines) {
    greatest.add(note);
  }
  const FigureColumns columns =
      figure_columns(canvas, std::max(4, display_width(std::to_string(std::max(last, last_noted)))), true);
  draw_figure_heads(canvas, columns, "line");
  std::uint32_t before = 0;
  for (const std::uint32_t number : shown_lines(notes, std::max(last, last_noted), line)) {
    const auto note = notes.lines.find(number);
    if (!text && note == notes.lines.end()) {
      continue;
    }
    if (text && number > before + 1) {
      draw_gap(canvas, number - before - 1, "line");
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
    draw_gap(canvas, last - before, "line");
  }
  canvas.paragraph("",
                   "time, loop: shares of all CPU time. cost: time of accesses that wait for another thread's store. "
                   "gain: the part of the cost that would be saved");
  return canvas.take();
}

}  // namespace crosstalk::driver
