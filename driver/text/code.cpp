// SPDX-License-Identifier: Apache-2.0
#include "driver/text/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "attribution/code/code_choice.h"
#include "driver/options/source_file.h"
#include "driver/text/figures.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

using attribution::FunctionCode;
using attribution::InstructionRow;

constexpr std::size_t most_functions = 20;

LineNote note_of(const InstructionRow& row) {
  return {row.share, row.cells, row.produced, row.true_sharing, row.false_sharing};
}

bool has_figures(const InstructionRow& row) { return row.share > 0 || !row.cells.empty() || !row.produced.empty(); }

/// Returns the rows that matter with their neighbours; all rows of a short function.
std::set<std::size_t> shown_rows(const FunctionCode& code, const attribution::CodeWanted& wanted) {
  constexpr std::size_t around = 4;
  constexpr std::size_t shown_whole = 40;
  std::set<std::size_t> shown;
  const std::size_t rows = code.instructions.size();
  for (std::size_t i = 0; i < rows; ++i) {
    const InstructionRow& row = code.instructions[i];
    const bool matters = wanted.line != 0 ? is_of_line(row.frames, wanted) : has_figures(row) || rows <= shown_whole;
    for (std::size_t at = i - std::min(i, around); matters && at < std::min(rows, i + around + 1); ++at) {
      shown.insert(at);
    }
  }
  return shown;
}

/// Lines of source files, each read once.
class Sources {
 public:
  explicit Sources(std::string sysroot) : sysroot_(std::move(sysroot)) {}
  /// Returns the line without leading blanks; empty if the file is not here.
  std::string line(const symbolizer::SourceLine& at) {
    const auto [file, fresh] = files_.try_emplace(at.file);
    if (fresh) {
      file->second = read_source(at.file, sysroot_);
    }
    if (!file->second || at.line == 0 || at.line > file->second->size()) {
      return {};
    }
    const std::string& text = (*file->second)[at.line - 1];
    const std::size_t begin = text.find_first_not_of(' ');
    return begin == std::string::npos ? std::string() : text.substr(begin);
  }

 private:
  std::string sysroot_;
  std::map<std::string, std::optional<std::vector<std::string>>> files_;
};

/// Formats "counters.cpp:41  ++counters[i].hits;  in bump", with the function if it is inlined.
std::string source_heading(const InstructionRow& row, Sources& sources) {
  if (row.frames.empty() || row.frames.front().source.line == 0) {
    return {};
  }
  const symbolizer::Frame& frame = row.frames.front();
  const std::string line = sources.line(frame.source);
  return source_text(frame.source.file, frame.source.line) + (line.empty() ? "" : "  " + line) +
         (frame.inlined && !frame.function.empty() ? "  in " + frame.function : "");
}

class CodePage {
 public:
  CodePage(Canvas& canvas, Sources& sources, const attribution::CodeWanted& wanted)
      : canvas_(canvas), sources_(sources), wanted_(wanted) {}

  void draw(const FunctionCode& code) {
    canvas_.heading(fit_end(canvas_.clean(code.function), canvas_.width(), canvas_.style().charset), facts_of(code));
    Greatest greatest;
    for (const InstructionRow& row : code.instructions) {
      greatest.add(note_of(row));
    }
    const int digits = code.instructions.empty() ? 1 : display_width(address_of(code.instructions.back()));
    const FigureColumns columns = figure_columns(canvas_, std::max(7, digits), false);
    draw_figure_heads(canvas_, columns, "address");
    std::string heading;
    std::size_t next = 0;
    for (const std::size_t i : shown_rows(code, wanted_)) {
      if (i > next) {
        draw_gap(canvas_, i - next, "instruction");
        heading.clear();
      }
      next = i + 1;
      draw_source(code.instructions[i], columns, heading);
      draw_instruction(code.instructions[i], columns, greatest);
    }
    if (next < code.instructions.size()) {
      draw_gap(canvas_, code.instructions.size() - next, "instruction");
    }
  }

 private:
  static std::string address_of(const InstructionRow& row) { return fmt::format("{:x}", row.address); }

  static std::string facts_of(const FunctionCode& code) {
    const std::size_t slash = code.module.rfind('/');
    return fmt::format("{}+0x{:x}, {} of the CPU time",
                       slash == std::string::npos ? code.module : code.module.substr(slash + 1), code.begin,
                       percent_text(code.share));
  }

  void draw_source(const InstructionRow& row, const FigureColumns& columns, std::string& heading) {
    const std::string source = source_heading(row, sources_);
    if (source == heading) {
      return;
    }
    heading = source;
    const int indent = canvas_.width() - text_columns(canvas_, columns) - columns.number - 2;
    const std::string shown = source.empty() ? "no source line" : canvas_.clean(source);
    canvas_.line(std::string(static_cast<std::size_t>(indent), ' ') +
                 canvas_.colored(fit_end(shown, canvas_.width() - indent, canvas_.style().charset), Hue::faint));
  }

  void draw_instruction(const InstructionRow& row, const FigureColumns& columns, const Greatest& greatest) {
    const LineNote note = note_of(row);
    const bool asked_for = is_of_line(row.frames, wanted_);
    canvas_.line(figures(canvas_, columns, &note, greatest, "") +
                 canvas_.colored(pad_left(address_of(row), columns.number), asked_for ? Hue::strong : Hue::faint) +
                 (asked_for ? "> " : "  ") +
                 fit_end(canvas_.clean(row.text), text_columns(canvas_, columns), canvas_.style().charset));
  }

  Canvas& canvas_;
  Sources& sources_;
  const attribution::CodeWanted& wanted_;
};

}  // namespace

std::string render_code(const attribution::Analysis& analysis, const attribution::CodeWanted& wanted,
                        const std::string& sysroot, TextStyle style) {
  Canvas canvas(style);
  draw_head(canvas, analysis);
  Sources sources(sysroot);
  CodePage page(canvas, sources, wanted);
  for (std::size_t i = 0; i < std::min(most_functions, analysis.code.size()); ++i) {
    page.draw(analysis.code[i]);
  }
  if (analysis.code.size() > most_functions) {
    canvas.blank();
    canvas.paragraph(
        "", fmt::format("{} further functions fit; name one to see it.", analysis.code.size() - most_functions));
  }
  canvas.blank();
  canvas.paragraph(
      "",
      "time: share of all CPU time; a sample counts at the access that took it if that is known, else at the next "
      "instruction. cost: time of accesses that wait for another thread's store. gain: the part of the cost that would "
      "be saved");
  return canvas.take();
}

}  // namespace crosstalk::driver
