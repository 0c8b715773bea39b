// SPDX-License-Identifier: Apache-2.0
// A report for people. Deterministic: equal analyses give equal text, to the byte.
#pragma once

#include <optional>
#include <string>

#include "attribution/groups.h"
#include "attribution/model.h"
#include "driver/report_options.h"
#include "driver/text_canvas.h"

namespace crosstalk::driver {

/// The whole report, or with a view other than summary that part and the head. No line is wider than
/// `style.width` (60 at least); without `style.color` there are no escape codes.
/// With `groups`, the matrix and the threads are theirs.
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
/// What is known of how fast the weightiest loops go; nothing when nothing is.
void draw_rates(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Busy times, waits, classes and remedies of the weightiest loops, and where threads' time went.
void draw_busy_times(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
void draw_functions(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// What entered the kernel, and who called it.
void draw_kernel(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// What hardware samples tell of memory accesses.
void draw_memory(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Regions that the program marks; nothing where it marks none, but in detail, where that is said.
void draw_regions(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most, bool detailed);
void draw_threads(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// How the program's own code came to both ends of what a finding tells; nothing where it is not called.
void draw_paths_of(Canvas& canvas, const attribution::Analysis& analysis, const attribution::Finding& finding);
void draw_groups(Canvas& canvas, const attribution::Grouping& groups, std::size_t most);
void draw_note(Canvas& canvas, const attribution::Grouping& groups);
void draw_sampling(Canvas& canvas, const attribution::Analysis& analysis);
void draw_warnings(Canvas& canvas, const attribution::Analysis& analysis);

// Words that several parts share.
/// "worker() counters.cpp:41"; what is unknown is left out, all unknown gives "unknown code".
[[nodiscard]] std::string place_text(const std::string& function, const std::string& file, std::uint32_t line);
/// The same in exactly `columns`: the function's name gives way, the place stays.
[[nodiscard]] std::string place_cell(const Canvas& canvas, const std::string& function, const std::string& place,
                                     int columns);
/// "counters.cpp:41" of a path and a line; empty when unknown.
[[nodiscard]] std::string source_text(const std::string& file, std::uint32_t line);
/// "counters.cpp:41-46" of the lines of a piece of code; "counters.cpp:41" where it is one.
[[nodiscard]] std::string source_text(const std::string& file, std::uint32_t begin, std::uint32_t end);
/// Name of a thread for a label: "3 worker".
[[nodiscard]] std::string thread_label(const attribution::Analysis& analysis, std::uint32_t thread);

/// What a set of cells adds up to, by the best evidence there is.
struct Exchanged {
  double true_amount = 0, false_amount = 0;
  [[nodiscard]] double total() const { return true_amount + false_amount; }
  [[nodiscard]] double false_share() const { return total() > 0 ? false_amount / total() : 0; }
};
/// In seconds of cost when `by_cost`, else in detections.
[[nodiscard]] Exchanged exchanged(const attribution::Cell& cell, bool by_cost);
[[nodiscard]] Exchanged exchanged(const attribution::Matrix& cells, bool by_cost);
/// Whether any cell has a cost above zero.
[[nodiscard]] bool has_cost(const attribution::Matrix& cells);
/// "true", "false" or "mixed", by which takes nine tenths.
[[nodiscard]] const char* sharing_word(const Exchanged& amount);
[[nodiscard]] Hue sharing_hue(const Exchanged& amount);
/// What would be saved of a cost, or the most that may be where it is not known; "none": no line had
/// to move, or threads only waited; "-": nothing is known.
[[nodiscard]] std::string gain_text(const Canvas& canvas, const attribution::Sum& sum);
/// "about 1.2M hand-overs a second"; empty where nearly all of them cannot be counted.
[[nodiscard]] std::string rate_of_exchange_text(const attribution::Matrix& cells, double duration_s);
/// "1.23 s" or, without a cost, "41 seen"; "-" when nothing.
[[nodiscard]] std::string amount_text(const attribution::Matrix& cells);

}  // namespace crosstalk::driver
