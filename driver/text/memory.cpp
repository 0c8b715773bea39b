// SPDX-License-Identifier: Apache-2.0
// --view memory: sources of the data of sampled accesses, and their cost by line, object and loop.
#include "driver/text/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "attribution/model/sentences.h"
#include "driver/text/report.h"

namespace crosstalk::driver {

namespace {

using attribution::AccessFigures;
using attribution::Memory;

constexpr int count_columns = 8;
constexpr int cost_columns = 9;

const char* level_words(attribution::MemoryLevel level) {
  static constexpr std::array<const char*, attribution::memory_levels> words = {"not told",
                                                                                "L0 cache",
                                                                                "L1 cache",
                                                                                "line fill buffer: on its way already",
                                                                                "L2 cache",
                                                                                "L2 miss buffer: on its way already",
                                                                                "L3 cache",
                                                                                "L4 cache",
                                                                                "memory-side cache",
                                                                                "a cache",
                                                                                "another core's cache of this node",
                                                                                "a cache of another node",
                                                                                "memory of this node",
                                                                                "memory of another node",
                                                                                "persistent memory",
                                                                                "CXL memory",
                                                                                "I/O",
                                                                                "uncached memory"};
  return words[static_cast<std::size_t>(level)];
}

std::string latency_cells(const std::optional<attribution::LatencyFigures>& latency) {
  return pad_left(latency ? count_text(latency->median) : "-", count_columns) +
         pad_left(latency ? count_text(latency->p90) : "-", count_columns);
}

std::string of_loads(const Memory& memory, std::uint64_t count) {
  return fmt::format("{} of {} ({})", count, attribution::count_of(memory.totals.loads, "load", "loads"),
                     percent_text(static_cast<double>(count) / static_cast<double>(memory.totals.loads)));
}

void draw_events(Canvas& canvas, const Memory& memory) {
  std::string text =
      fmt::format("{} sampled, {} and {}:", attribution::count_of(memory.totals.samples, "access", "accesses"),
                  attribution::count_of(memory.totals.loads, "load", "loads"),
                  attribution::count_of(memory.totals.stores, "store", "stores"));
  const char* separator = " ";
  for (const attribution::MemoryEvent& event : memory.events) {
    text += fmt::format("{}{} of {}", separator, event.samples, event.name);
    separator = ", ";
  }
  text += ".";
  if (memory.totals.without_address > 0) {
    text += fmt::format(" {} have no address.", memory.totals.without_address);
  }
  canvas.paragraph("  ", text);
}

void draw_sources(Canvas& canvas, const Memory& memory) {
  canvas.blank();
  canvas.line(
      canvas.colored("  " + pad_left("loads", count_columns) + pad_left("share", count_columns) +
                         pad_left("median", count_columns) + pad_left("p90", count_columns) +
                         canvas.cell("  found in (latencies in cycles)", canvas.width() - 2 - 4 * count_columns),
                     Hue::faint));
  for (const attribution::SourceRow& row : memory.sources) {
    canvas.line("  " + pad_left(std::to_string(row.samples), count_columns) +
                pad_left(percent_text(row.share), count_columns) + latency_cells(row.latency) + "  " +
                canvas.cell(level_words(row.level), canvas.width() - 2 - 4 * count_columns - 2));
  }
  for (std::size_t i = 0; i < attribution::memory_levels; ++i) {
    if (memory.totals.missed[i] > 0) {
      canvas.paragraph("  ",
                       fmt::format("Of the samples without a known level, {} were not in: {}.", memory.totals.missed[i],
                                   level_words(static_cast<attribution::MemoryLevel>(i))));
    }
  }
}

std::string translations_text(const AccessFigures& totals) {
  static constexpr std::array<const char*, attribution::translations> words = {
      "not told", "in the first TLB", "in the second TLB", "in a TLB", "by a walk of the page tables", "by a fault"};
  std::string text;
  for (std::size_t i = attribution::translations; i-- > 0;) {
    if (totals.translation[i] > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", totals.translation[i], words[i]);
    }
  }
  return text;
}

void draw_facts(Canvas& canvas, const Memory& memory) {
  const AccessFigures& totals = memory.totals;
  canvas.blank();
  if (totals.tells_hitm()) {
    std::string text = of_loads(memory, totals.hitm_samples()) + " found the line modified in another cache (HITM)";
    text += totals.hitm_samples() > 0
                ? fmt::format(": {} in this node, {} in another.", totals.hitm_local, totals.hitm_remote)
                : std::string(".");
    canvas.paragraph("  ", text);
  }
  if (totals.stores > 0) {
    const std::uint64_t untold = totals.stores - totals.store_hits - totals.store_misses;
    canvas.paragraph("  ", fmt::format("Stores: {} hit the L1 cache, {} missed it{}.", totals.store_hits,
                                       totals.store_misses, untold == 0 ? "" : fmt::format(", {} not told", untold)));
  }
  canvas.paragraph("  ", "Addresses were translated: " + translations_text(totals) + ".");
  if (totals.lock_unknown < totals.samples) {
    canvas.paragraph("  ", fmt::format("Locked: {}. Loads blocked by an earlier store: {} by its data, {} by its "
                                       "address.",
                                       totals.locked, totals.blocked_data, totals.blocked_address));
  }
}

std::string head_of_rows() {
  return "  " + pad_left("cost", cost_columns) + pad_left("samples", count_columns) +
         pad_left("median", count_columns) + pad_left("p90", count_columns) + pad_left("HITM", count_columns) + "  ";
}
constexpr int rows_offset = 2 + cost_columns + 4 * count_columns + 2;

std::string figures_of_row(const AccessFigures& figures) {
  return "  " + memory_cost_cell(figures) + pad_left(std::to_string(figures.samples), count_columns) +
         latency_cells(figures.latency) +
         pad_left(figures.tells_hitm() ? std::to_string(figures.hitm_samples()) : "-", count_columns) + "  ";
}

void draw_memory_lines(Canvas& canvas, const Memory& memory, std::size_t most) {
  canvas.heading("Accesses by source line", "cost: latencies of the loads that samples stand for, summed");
  canvas.line(canvas.colored(head_of_rows() + "code", Hue::faint));
  const std::size_t shown = std::min(most, memory.lines.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const attribution::MemoryLine& row = memory.lines[i];
    canvas.line(figures_of_row(row.figures) +
                place_cell(canvas, row.function, source_text(row.file, row.line), canvas.width() - rows_offset));
    for (const attribution::CallPath& path : row.call_paths) {
      draw_call_path(canvas, path);
    }
  }
  draw_more(canvas, memory.all_lines, shown, " lines");
}

void draw_memory_objects(Canvas& canvas, const Memory& memory, std::size_t most) {
  if (memory.objects.empty()) {
    return;
  }
  canvas.heading("Accesses by object");
  canvas.line(canvas.colored(head_of_rows() + "object", Hue::faint));
  const std::size_t shown = std::min(most, memory.objects.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const attribution::MemoryObject& row = memory.objects[i];
    canvas.line(figures_of_row(row.figures) +
                canvas.cell(row.name + (row.size ? ", " + bytes_text(*row.size) : ""), canvas.width() - rows_offset));
  }
  draw_more(canvas, memory.all_objects, shown, " objects");
}

void draw_memory_loops(Canvas& canvas, const Memory& memory, std::size_t most) {
  if (memory.loops.empty()) {
    return;
  }
  canvas.heading("Accesses by loop", "each loop's own, without those of loops inside it");
  canvas.line(canvas.colored(head_of_rows() + "loop", Hue::faint));
  const std::size_t shown = std::min(most, memory.loops.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const attribution::MemoryLoop& row = memory.loops[i];
    const std::string place = source_text(row.file, row.line_begin, row.line_end);
    canvas.line(figures_of_row(row.figures) + place_cell(canvas, row.function, place, canvas.width() - rows_offset));
  }
  draw_more(canvas, memory.all_loops, shown, " loops");
}

}  // namespace

std::string memory_cost_cell(const AccessFigures& figures) {
  return pad_left(figures.cost_s        ? seconds_text(*figures.cost_s)
                  : figures.cost_cycles ? count_text(*figures.cost_cycles) + " cy"
                                        : "-",
                  cost_columns);
}

void draw_memory(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most) {
  const Memory& memory = analysis.memory;
  canvas.heading("Memory accesses", "by samples of the hardware");
  if (!memory.unknown.empty()) {
    canvas.paragraph("  ", "Nothing is known: " + memory.unknown + ".");
    return;
  }
  draw_events(canvas, memory);
  if (memory.totals.loads > 0) {
    draw_sources(canvas, memory);
  }
  draw_facts(canvas, memory);
  draw_memory_lines(canvas, memory, most);
  draw_memory_objects(canvas, memory, most);
  draw_memory_loops(canvas, memory, most);
  draw_shared_lines(canvas, analysis, most);
  draw_sampled_sharing(canvas, analysis);
  canvas.heading("Limits of these figures");
  for (const std::string& limit : memory.limits) {
    canvas.paragraph(std::string("  ") + canvas.sign("• ", "* "), limit + ".");
  }
}

}  // namespace crosstalk::driver
