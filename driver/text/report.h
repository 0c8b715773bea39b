// SPDX-License-Identifier: Apache-2.0
// A report for people. Deterministic: equal analyses give equal text, to the byte.
#pragma once

#include <optional>
#include <string>

#include "attribution/groups.h"
#include "attribution/model/model.h"
#include "driver/options/report_options.h"
#include "driver/terminal/canvas.h"

namespace crosstalk::driver {

/// Renders the whole report, or with a view other than summary that part and the head. No line is wider than
/// `style.width` (60 at least); without `style.color` there are no escape codes. With `groups`, the matrix and the
/// threads are those of the groups.
[[nodiscard]] std::string render_text(const attribution::Analysis& analysis, View view,
                                      const attribution::Grouping* groups, TextStyle style);

// Its parts, for render_text and render_source. `most`: rows at most.
void draw_head(Canvas& canvas, const attribution::Analysis& analysis);
void draw_matrix(Canvas& canvas, const attribution::Analysis& analysis);
void draw_matrix(Canvas& canvas, const attribution::Analysis& analysis, const attribution::Grouping& groups);
void draw_invalidations(Canvas& canvas, const attribution::Analysis& analysis, const attribution::Grouping* groups);
void draw_line_pairs(Canvas& canvas, const attribution::Communication& communication, std::size_t most);
void draw_lines(Canvas& canvas, const attribution::Communication& communication, std::size_t most);
void draw_objects(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most, bool detailed);
void draw_loops(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Draws the rates of the costliest loops; nothing if none is known.
void draw_rates(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Draws busy times, waits, classes and advice of the costliest loops, and the threads' waits.
void draw_busy_times(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
void draw_functions(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Draws the kernel entries and their callers.
void draw_kernel(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Draws the hardware samples of memory accesses.
void draw_memory(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Draws the regions that the program marks. If there are none, says so if `detailed`, else draws nothing.
void draw_regions(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most, bool detailed);
void draw_threads(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Draws the call paths to both ends of a finding; nothing if no caller is known.
void draw_paths_of(Canvas& canvas, const attribution::Analysis& analysis, const attribution::Finding& finding);
void draw_groups(Canvas& canvas, const attribution::Grouping& groups, std::size_t most);
void draw_note(Canvas& canvas, const attribution::Grouping& groups);
void draw_sampling(Canvas& canvas, const attribution::Analysis& analysis);
void draw_warnings(Canvas& canvas, const attribution::Analysis& analysis);

// Words that several parts share.
/// Formats "worker() counters.cpp:41"; leaves out unknown parts; if all are unknown, "unknown code".
[[nodiscard]] std::string place_text(const std::string& function, const std::string& file, std::uint32_t line);
/// The same in exactly `columns`: cuts the function's name and keeps the place.
[[nodiscard]] std::string place_cell(const Canvas& canvas, const std::string& function, const std::string& place,
                                     int columns);
/// Formats "counters.cpp:41" from a path and a line; empty if unknown.
[[nodiscard]] std::string source_text(const std::string& file, std::uint32_t line);
/// Formats "counters.cpp:41-46" for a range of lines; "counters.cpp:41" for one.
[[nodiscard]] std::string source_text(const std::string& file, std::uint32_t begin, std::uint32_t end);
/// Draws "  41 %  worker < main": a call path with its share.
void draw_call_path(Canvas& canvas, const attribution::CallPath& path);
/// Returns a thread's label: "3 worker".
[[nodiscard]] std::string thread_label(const attribution::Analysis& analysis, std::uint32_t thread);

/// Sum of a set of cells: costs if known, else detections.
struct Exchanged {
  double true_amount = 0, false_amount = 0;
  std::uint64_t seen = 0;  // communications that it rests on; 0: not known
  void add(const Exchanged& other);
  /// True if it rests on so few that it could as well be a third or three times as much.
  [[nodiscard]] bool is_rough() const { return seen != 0 && seen < 5; }
  [[nodiscard]] double total() const { return true_amount + false_amount; }
  [[nodiscard]] double false_share() const { return total() > 0 ? false_amount / total() : 0; }
};
/// Sums in seconds of cost if `by_cost`, else in detections.
[[nodiscard]] Exchanged exchanged(const attribution::Cell& cell, bool by_cost);
[[nodiscard]] Exchanged exchanged(const attribution::Matrix& cells, bool by_cost);
/// True if any cell has a cost above zero.
[[nodiscard]] bool has_cost(const attribution::Matrix& cells);
/// Returns "true", "false" or "mixed"; a pure kind needs nine tenths.
[[nodiscard]] const char* sharing_word(const Exchanged& amount);
[[nodiscard]] Hue sharing_hue(const Exchanged& amount);
/// Formats the gain, or its upper limit if the gain is unknown; "none": no line had to move, or threads only waited;
/// "-": nothing is known.
[[nodiscard]] std::string gain_text(const Canvas& canvas, const attribution::Sum& sum);
/// Formats "about 1.2M hand-overs a second"; empty unless nearly all hand-overs can be counted.
[[nodiscard]] std::string rate_of_exchange_text(const attribution::Matrix& cells, double duration_s);
/// Formats "1.23 s" or, without a cost, "41 seen"; "-" if nothing was seen.
[[nodiscard]] std::string amount_text(const attribution::Matrix& cells);

}  // namespace crosstalk::driver
