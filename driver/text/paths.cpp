// SPDX-License-Identifier: Apache-2.0
// Call paths that lead to a finding, with only the program's own functions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "attribution/model/sentences.h"
#include "attribution/program/own_code.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

using attribution::LineRow;

/// True for functions that run before a program's own code in each thread; they are known by name only.
bool is_thread_entry(const std::string& function) {
  static constexpr std::array<std::string_view, 8> names = {
      "_start", "start_thread", "clone", "clone3", "__clone", "__clone3", "__GI___clone3", "__clone_internal"};
  return std::find(names.begin(), names.end(), function) != names.end() || function.starts_with("__libc_start") ||
         function.starts_with("crosstalk::in_target::");
}

/// True for sources of Debian's C library, which are named relative to its build folder.
bool is_libc_source(const std::string& file) {
  return file.starts_with("./") || file.starts_with("../sysdeps/") || file.find("/glibc-") != std::string::npos;
}

std::vector<const symbolizer::Frame*> own_frames(const attribution::CallPath& path) {
  std::vector<const symbolizer::Frame*> own;
  for (const symbolizer::Frame& frame : path.frames) {
    if (!attribution::is_library_code(frame) && !attribution::is_unknown(frame) && !is_thread_entry(frame.function) &&
        !is_libc_source(frame.source.file)) {
      own.push_back(&frame);
    }
  }
  return own;
}

const LineRow* row_of(const attribution::Communication& communication, attribution::Role role, const std::string& file,
                      std::uint32_t line, const std::string& function) {
  const auto found = std::find_if(communication.lines.begin(), communication.lines.end(), [&](const LineRow& row) {
    return row.role == role && row.file == file && row.line == line && row.function == function;
  });
  return found == communication.lines.end() ? nullptr : &*found;
}

/// Formats "add() a.cpp:30 <- worker() a.cpp:41 <- main() a.cpp:60", as far out as `columns` allow; empty if only one
/// function is the program's own.
std::string path_text(const Canvas& canvas, const LineRow& row, int columns) {
  if (row.call_paths.empty()) {
    return {};
  }
  const auto frames = own_frames(row.call_paths.front());
  const std::string more = canvas.sign(" ← …", " < ..");
  std::string text;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::string place = source_text(frames[i]->source.file, frames[i]->source.line);
    const std::string next =
        canvas.clean((i == 0 ? "" : canvas.sign(" ← ", " < ")) + attribution::in_short(frames[i]->function) +
                     (place.empty() ? "" : " " + place));
    const int room = columns - (i + 1 < frames.size() ? display_width(more) : 0);
    if (i > 0 && display_width(text) + display_width(next) > room) {
      return text + more;
    }
    text += next;
  }
  return frames.size() < 2 ? std::string() : text;
}

}  // namespace

void draw_paths_of(Canvas& canvas, const attribution::Analysis& analysis, const attribution::Finding& finding) {
  const auto& pairs = analysis.communication.line_pairs;
  const auto pair = std::find_if(pairs.begin(), pairs.end(),
                                 [&](const attribution::LinePair& p) { return p.object == finding.object; });
  if (finding.object.empty() || pair == pairs.end()) {
    return;
  }
  const LineRow* const stored = row_of(analysis.communication, attribution::Role::producer, pair->producer_file,
                                       pair->producer_line, pair->producer_function);
  const LineRow* const accessed = row_of(analysis.communication, attribution::Role::consumer, pair->consumer_file,
                                         pair->consumer_line, pair->consumer_function);
  const int columns = canvas.width() - 4 - display_width("accessed: ");
  const std::string store = stored == nullptr ? "" : path_text(canvas, *stored, columns);
  const std::string access = accessed == nullptr ? "" : path_text(canvas, *accessed, columns);
  for (const auto& [word, text] : {std::pair{store == access ? "called: " : "stored: ", store},
                                   std::pair{"accessed: ", store == access ? std::string() : access}}) {
    if (!text.empty()) {
      canvas.line(canvas.colored("    " + canvas.cell(word + text, canvas.width() - 4), Hue::faint));
    }
  }
}

}  // namespace crosstalk::driver
