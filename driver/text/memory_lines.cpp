// SPDX-License-Identifier: Apache-2.0
// Shared lines and sampled communication of --view memory.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "driver/text/memory.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

using attribution::AccessFigures;
using attribution::SharedLine;
using attribution::SharedOffset;

constexpr int narrow = 6;
constexpr int wide = 8;

/// Formats "0-2,5"; a long list is cut.
template <class Number>
std::string numbers_text(const std::vector<Number>& numbers) {
  constexpr std::size_t most_ranges = 3;
  std::string text;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
      ++end;
    }
    if (++ranges > most_ranges) {
      return text + "...";
    }
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]) +
            (end - i == 1 ? "" : "-" + std::to_string(numbers[end - 1]));
    i = end;
  }
  return text;
}

std::string nodes_text(const std::vector<std::int32_t>& nodes) {
  const bool known = std::all_of(nodes.begin(), nodes.end(), [](std::int32_t node) { return node >= 0; });
  return known && !nodes.empty() ? numbers_text(nodes) : "-";
}

std::string hitm_cells(const AccessFigures& figures) {
  const bool told = figures.tells_hitm();
  return pad_left(told ? std::to_string(figures.hitm_local) : "-", narrow) +
         pad_left(told ? std::to_string(figures.hitm_remote) : "-", wide);
}

/// False on a narrow terminal, which has no room for all columns.
bool is_roomy(const Canvas& canvas) { return canvas.width() >= 90; }

std::string store_cells(const Canvas& canvas, const AccessFigures& figures) {
  return pad_left(std::to_string(figures.stores), wide) +
         (is_roomy(canvas) ? pad_left(std::to_string(figures.store_hits), narrow) +
                                 pad_left(std::to_string(figures.store_misses), narrow)
                           : "");
}

/// Returns the columns that are left for names.
int line_columns(const Canvas& canvas) {
  return canvas.width() - 2 * narrow - 4 * wide - 2 - (is_roomy(canvas) ? 2 * narrow : 0);
}

std::string name_of(const SharedLine& line) {
  const std::string where = fmt::format("0x{:x}", line.address) + (line.pid ? "" : " of the kernel");
  // An object without a name is already named by its address.
  return line.object.starts_with("memory at ") || !line.pid
             ? where
             : line.object + (line.object_offset == 0 ? "" : fmt::format("+{}", line.object_offset)) + "  " + where;
}

void draw_line(Canvas& canvas, const SharedLine& line, std::size_t rank) {
  canvas.line(pad_left(std::to_string(rank), narrow) +
              pad_left(line.figures.tells_hitm() ? percent_text(line.hitm_share) : "-", wide) +
              hitm_cells(line.figures) + pad_left(std::to_string(line.figures.loads), wide) +
              store_cells(canvas, line.figures) + "  " +
              canvas.colored(canvas.cell(name_of(line), line_columns(canvas)), Hue::strong));
}

std::string latencies_text(const SharedOffset& row) {
  std::string text;
  const auto add = [&](const char* what, const std::optional<double>& median) {
    text += median ? fmt::format("{}{} {}", text.empty() ? "" : ", ", what, count_text(*median)) : "";
  };
  add("HITM", row.hitm_local_latency);
  add("remote HITM", row.hitm_remote_latency);
  add("other", row.other_latency);
  return text.empty() ? "" : ", cycles: " + text;
}

/// Returns the source line, or else the instruction's address.
std::string place_of(const SharedOffset& row) {
  const std::string source = source_text(row.file, row.line);
  return source.empty() && row.instruction != 0 ? fmt::format("0x{:x}", row.instruction) : source;
}

void draw_offset(Canvas& canvas, const SharedOffset& row) {
  canvas.line(pad_left(fmt::format("+{}", row.offset), narrow + wide) + hitm_cells(row.figures) +
              pad_left(std::to_string(row.figures.loads), wide) + store_cells(canvas, row.figures) + "  " +
              place_cell(canvas, row.function, place_of(row), line_columns(canvas)));
  const std::string nodes = nodes_text(row.nodes);
  canvas.line(canvas.colored(
      std::string(static_cast<std::size_t>(narrow + wide + 2), ' ') +
          canvas.cell((row.field.empty() ? "" : row.field + ", ") +
                          fmt::format("thread{} {}{}{}", row.threads.size() == 1 ? "" : "s", numbers_text(row.threads),
                                      nodes == "-" ? "" : " of node " + nodes, latencies_text(row)),
                      canvas.width() - narrow - wide - 2),
      Hue::faint));
}

std::string sampled_amount_text(const attribution::SampledPair& pair, bool with_interval) {
  if (!pair.hitm) {
    return "-";
  }
  return count_text(*pair.hitm) +
         (pair.hitm_ci95 && with_interval
              ? fmt::format(" ({} to {})", count_text(pair.hitm_ci95->front()), count_text(pair.hitm_ci95->back()))
              : "");
}

std::string samples_text(double samples) { return samples > 0 ? fmt::format("{:.1f}", samples) : "-"; }

}  // namespace

void draw_shared_lines(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most) {
  const attribution::Memory& memory = analysis.memory;
  canvas.heading("Shared lines", "accessed by several threads, one of which stores, or found modified elsewhere");
  if (memory.shared_lines.empty()) {
    canvas.paragraph("  ", "None was sampled.");
    return;
  }
  const AccessFigures& all = memory.on_shared_lines;
  canvas.paragraph("  ", fmt::format("{} line{}: {} loads and {} stores were sampled there, {} of them locked.",
                                     memory.all_shared_lines, memory.all_shared_lines == 1 ? "" : "s", all.loads,
                                     all.stores, all.locked));
  canvas.line(canvas.colored(pad_left("rank", narrow) + pad_left("share", wide) + pad_left("HITM", narrow) +
                                 pad_left("remote", wide) + pad_left("loads", wide) + pad_left("stores", wide) +
                                 (is_roomy(canvas) ? pad_left("hit", narrow) + pad_left("miss", narrow) : "") +
                                 canvas.cell("  line; offset, code", line_columns(canvas) + 2),
                             Hue::faint));
  const std::size_t shown = std::min(most, memory.shared_lines.size());
  for (std::size_t i = 0; i < shown; ++i) {
    draw_line(canvas, memory.shared_lines[i], i + 1);
    for (const SharedOffset& row : memory.shared_lines[i].offsets) {
      draw_offset(canvas, row);
    }
  }
  draw_more(canvas, memory.all_shared_lines, shown, " lines");
}

void draw_sampled_sharing(Canvas& canvas, const attribution::Analysis& analysis) {
  const attribution::SampledSharing& sharing = analysis.memory.sharing;
  canvas.heading("Communication by samples near in time", "not comparable with figures of watched lines");
  if (sharing.pairs.empty()) {
    canvas.paragraph("  ", "No thread was sampled to access a line near a sampled store of another one.");
  } else {
    const int amount_columns = is_roomy(canvas) ? 28 : 10;
    canvas.line(canvas.colored("  " + pad_left(is_roomy(canvas) ? "HITM loads, estimated" : "HITM", amount_columns) +
                                   pad_left("samples", wide + 2) + pad_left("remote", wide) +
                                   pad_left("possible", wide + 2) + "  producer, consumer",
                               Hue::faint));
    std::vector<attribution::SampledPair> pairs = sharing.pairs;
    std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
      return std::pair(a.hitm_samples, a.possible_samples) > std::pair(b.hitm_samples, b.possible_samples);
    });
    for (const attribution::SampledPair& pair : pairs) {
      canvas.line("  " + pad_left(sampled_amount_text(pair, is_roomy(canvas)), amount_columns) +
                  pad_left(samples_text(pair.hitm_samples), wide + 2) +
                  pad_left(samples_text(pair.hitm_remote_samples), wide) +
                  pad_left(samples_text(pair.possible_samples), wide + 2) + "  " +
                  canvas.cell(thread_label(analysis, pair.producer) + canvas.sign(" → ", " -> ") +
                                  thread_label(analysis, pair.consumer),
                              canvas.width() - amount_columns - 4 * wide - 8));
    }
  }
  if (sharing.unattributed_samples > 0) {
    canvas.paragraph("  ", fmt::format("For {} of {} sampled HITM loads no other thread's store was sampled close in "
                                       "time, so the producer is unknown.",
                                       sharing.unattributed_samples, sharing.hitm_samples));
  }
}

}  // namespace crosstalk::driver
