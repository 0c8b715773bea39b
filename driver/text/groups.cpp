// SPDX-License-Identifier: Apache-2.0
// Draws groups of threads, or the cores and sockets that they ran on.
#include <algorithm>
#include <string>
#include <vector>

#include "driver/text/report.h"

namespace crosstalk::driver {

using attribution::Group;
using attribution::Grouping;

namespace {

std::vector<const Group*> by_cpu_time(const Grouping& groups) {
  std::vector<const Group*> order;
  for (const Group& group : groups.groups) {
    order.push_back(&group);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Group* a, const Group* b) { return a->cpu_s.value_or(-1) > b->cpu_s.value_or(-1); });
  return order;
}

/// False on a narrow terminal, which has no room for the samples.
bool is_wide(const Canvas& canvas) { return canvas.width() >= 80; }

std::string columns(const Canvas& canvas, const std::string& members, const std::string& cpu,
                    const std::string& communication, const std::string& kernel, const std::string& samples) {
  return "  " + pad_left(cpu, 9) + "  " + pad_left(communication, 14) + "  " + pad_left(kernel, 8) + "  " +
         (is_wide(canvas) ? pad_left(samples, 8) + "  " : "") + pad_left(members, 10) + "  ";
}

}  // namespace

void draw_note(Canvas& canvas, const Grouping& groups) {
  if (!groups.note.empty()) {
    canvas.paragraph("  ", groups.note);
  }
}

void draw_groups(Canvas& canvas, const Grouping& groups, std::size_t most) {
  canvas.heading(groups.of_processors() ? "Processors" : "Threads",
                 "time in communicating accesses is that of the consumer");
  if (groups.groups.empty()) {
    canvas.paragraph("  ", groups.of_processors() ? "No sample was taken." : "No thread was observed.");
    return;
  }
  const std::string head = columns(canvas, groups.of_processors() ? "processors" : "threads", "CPU time",
                                   "communicating", "kernel", "samples");
  canvas.line(canvas.colored(head + "group", Hue::faint));
  const auto order = by_cpu_time(groups);
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i) {
    const Group& group = *order[i];
    canvas.line(columns(canvas, std::to_string(group.members.size()), group.cpu_s ? seconds_text(*group.cpu_s) : "-",
                        group.communication_s.value_or(0) > 0 ? seconds_text(*group.communication_s) : "-",
                        group.kernel_share ? percent_text(*group.kernel_share) : "-", std::to_string(group.samples)) +
                canvas.cell(group.name, canvas.width() - display_width(head)));
  }
  draw_more(canvas, order.size(), most, ": crosstalk report --view threads");
  draw_note(canvas, groups);
}

}  // namespace crosstalk::driver
