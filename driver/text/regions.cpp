// SPDX-License-Identifier: Apache-2.0
// Regions that the program marks: elapsed time of its threads in each, and the time's parts.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "driver/text/report.h"
#include "driver/words/busy_words.h"

namespace crosstalk::driver {
namespace {

using attribution::Analysis;
using attribution::Interval;
using attribution::RegionSummary;
using attribution::RegionThread;

constexpr int entries_columns = 9;
constexpr int seconds_columns = 9;
constexpr int cpu_columns = 24;
constexpr int uneven_columns = 8;
constexpr int before_name = 2 + entries_columns + 2 + seconds_columns + 2 + cpu_columns + 2 + uneven_columns + 2;

std::string columns(const std::string& entries, const std::string& elapsed, const std::string& cpu,
                    const std::string& uneven) {
  return "  " + pad_left(entries, entries_columns) + "  " + pad_left(elapsed, seconds_columns) + "  " +
         pad_left(cpu, cpu_columns) + "  " + pad_left(uneven, uneven_columns) + "  ";
}

/// Formats "340 ms (320..360)"; the limits as `short_seconds_text()`.
std::string cpu_text(const std::optional<double>& cpu_s, const Interval& ci95) {
  return cpu_s ? fmt::format("{} ({}..{})", seconds_text(*cpu_s), short_seconds_text(ci95.low),
                             short_seconds_text(ci95.high))
               : "-";
}

int region_bar_columns(const Canvas& canvas) { return std::clamp(canvas.width() - 30, 20, 50); }

void draw_threads_of(Canvas& canvas, const Analysis& analysis, const RegionSummary& region) {
  for (const RegionThread& thread : region.threads) {
    canvas.line(canvas.colored(columns(count_text(static_cast<double>(thread.entries)), seconds_text(thread.elapsed_s),
                                       cpu_text(thread.cpu_s, thread.cpu_ci95), "") +
                                   canvas.cell("  thread " + thread_label(analysis, thread.thread),
                                               std::max(12, canvas.width() - before_name)),
                               Hue::faint));
  }
}

}  // namespace

void draw_regions(Canvas& canvas, const Analysis& analysis, std::size_t most, bool detailed) {
  if (analysis.regions.empty() && !detailed) {
    return;
  }
  canvas.heading("Regions", "times of all threads together, regions inside them included; CPU time by samples, 95 %");
  if (analysis.regions.empty()) {
    canvas.paragraph("  ",
                     "No observed thread marked a region. The regions of processes that are watched from outside are "
                     "unknown. See crosstalk/region.h and man crosstalk-report.");
    return;
  }
  canvas.line(canvas.colored(columns("entries", "elapsed", "CPU time", "uneven") + "region", Hue::faint));
  std::set<std::string> notes;
  for (std::size_t i = 0; i < std::min(most, analysis.regions.size()); ++i) {
    const RegionSummary& region = analysis.regions[i];
    const std::string name = std::string(2 * std::size_t{region.depth}, ' ') + region.name;
    canvas.line(columns(count_text(static_cast<double>(region.entries)), seconds_text(region.elapsed_s),
                        cpu_text(region.cpu_s, region.cpu_ci95),
                        region.imbalance ? percent_text(*region.imbalance) : "-") +
                canvas.cell(name, std::max(12, canvas.width() - before_name)));
    if (detailed) {
      draw_threads_of(canvas, analysis, region);
      canvas.line("      " + stacked(region.waits, region_bar_columns(canvas)));
      canvas.paragraph("      ", waits_in_words(region.waits));
      notes.insert(region.waits.notes.begin(), region.waits.notes.end());
    }
  }
  for (const std::string& note : notes) {
    canvas.paragraph("  note: ", note);
  }
  draw_more(canvas, analysis.regions.size(), most, ": crosstalk report --view regions");
}

}  // namespace crosstalk::driver
