// SPDX-License-Identifier: Apache-2.0
#include "driver/text/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

namespace crosstalk::driver {

namespace {

using attribution::Analysis;

constexpr std::size_t all = 1000;  // rows of a view; attribution limits them further

void draw_matrix_of(Canvas& canvas, const Analysis& analysis, const attribution::Grouping* groups) {
  if (groups == nullptr) {
    draw_matrix(canvas, analysis);
  } else {
    draw_matrix(canvas, analysis, *groups);
  }
}

void draw_threads_of(Canvas& canvas, const Analysis& analysis, const attribution::Grouping* groups, std::size_t most) {
  if (groups == nullptr) {
    draw_threads(canvas, analysis, most);
  } else {
    draw_groups(canvas, *groups, most);
  }
}

void draw_summary(Canvas& canvas, const Analysis& analysis, const attribution::Grouping* groups) {
  canvas.blank();
  for (const attribution::Finding& finding : analysis.findings) {
    canvas.paragraph(std::string("  ") + canvas.sign("• ", "* "), finding.sentence);
    draw_paths_of(canvas, analysis, finding);
  }
  draw_matrix_of(canvas, analysis, groups);
  draw_line_pairs(canvas, analysis.communication, 5);
  draw_objects(canvas, analysis, 3, false);
  draw_loops(canvas, analysis, 8);
  draw_regions(canvas, analysis, 8, false);
  draw_threads_of(canvas, analysis, groups, 8);
  draw_sampling(canvas, analysis);
  draw_warnings(canvas, analysis);
}

}  // namespace

namespace {

/// The CPU time, and of how much it is a part if threads went unobserved.
std::string cpu_time_text(const Analysis& analysis) {
  constexpr double least_part = 0.01;
  constexpr double least_s = 0.05;  // the kernel counts a process's time by ticks
  const double unobserved_s = static_cast<double>(analysis.session.unobserved_cpu_ns.value_or(0)) * 1e-9;
  const double all_s = analysis.cpu_s + unobserved_s;
  return unobserved_s < std::max(least_s, least_part * all_s)
             ? seconds_text(analysis.cpu_s) + " CPU time"
             : seconds_text(analysis.cpu_s) + " of at least " + seconds_text(all_s) + " CPU time observed";
}

}  // namespace

void draw_head(Canvas& canvas, const Analysis& analysis) {
  std::string facts = seconds_text(analysis.duration_s);
  std::set<std::int32_t> processes;  // one that executes another program has a row for each
  for (const profile::ProcessRow& process : analysis.processes) {
    processes.insert(process.pid);
  }
  facts += processes.size() > 1 ? fmt::format(", {} processes", processes.size()) : "";
  facts += ", " + attribution::count_of(analysis.threads.size(), "thread", "threads");
  if (analysis.shares_of.empty()) {
    facts += cpu_time_known(analysis) ? ", " + cpu_time_text(analysis) : ", CPU time not known";
  }
  if (analysis.session.exit_status) {
    facts += fmt::format(", exit status {}", *analysis.session.exit_status);
  }
  if (!analysis.session.complete) {
    facts += ", recording cut short";
  }
  canvas.line(canvas.colored(canvas.cell(analysis.session.command, canvas.width()), Hue::strong));
  canvas.line(canvas.colored(canvas.cell(facts, canvas.width()), Hue::faint));
  if (!analysis.filter.empty()) {
    canvas.paragraph("", "filtered: " + analysis.filter + "; shares are of the whole program");
  }
}

std::string render_text(const Analysis& analysis, View view, const attribution::Grouping* groups, TextStyle style) {
  Canvas canvas(style);
  draw_head(canvas, analysis);
  switch (view) {
    case View::summary:
      draw_summary(canvas, analysis, groups);
      break;
    case View::matrix:
      draw_matrix_of(canvas, analysis, groups);
      draw_invalidations(canvas, analysis, groups);
      break;
    case View::lines:
      draw_line_pairs(canvas, analysis.communication, all);
      draw_lines(canvas, analysis.communication, all);
      break;
    case View::objects:
      draw_objects(canvas, analysis, all, true);
      break;
    case View::loops:
      draw_loops(canvas, analysis, all);
      draw_rates(canvas, analysis, all);
      draw_busy_times(canvas, analysis, 8);
      draw_functions(canvas, analysis, 20);
      draw_kernel(canvas, analysis, 10);
      break;
    case View::busy:
      draw_busy_times(canvas, analysis, 8);
      break;
    case View::memory:
      draw_memory(canvas, analysis, all);
      break;
    case View::regions:
      draw_regions(canvas, analysis, all, true);
      break;
    case View::threads:
      draw_threads_of(canvas, analysis, groups, all);
      draw_sampling(canvas, analysis);
      break;
    case View::source:
    case View::assembly:
      break;  // render_source() and render_code() draw them, from the code's own text
  }
  return canvas.take();
}

}  // namespace crosstalk::driver
