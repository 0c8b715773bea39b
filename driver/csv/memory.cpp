// SPDX-License-Identifier: Apache-2.0
// --view memory as one table; fields that a row lacks are empty.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/csv/report.h"
#include "driver/words/names.h"

namespace crosstalk::driver {

namespace {

using attribution::AccessFigures;
using attribution::Memory;

constexpr std::array<std::string_view, 43> columns = {"part",
                                                      "rank",
                                                      "name",
                                                      "function",
                                                      "file",
                                                      "line",
                                                      "line_end",
                                                      "module",
                                                      "address",
                                                      "offset",
                                                      "field",
                                                      "producer",
                                                      "consumer",
                                                      "threads",
                                                      "nodes",
                                                      "processors",
                                                      "samples",
                                                      "share",
                                                      "loads",
                                                      "stores",
                                                      "hitm_local",
                                                      "hitm_remote",
                                                      "locked",
                                                      "store_hits",
                                                      "store_misses",
                                                      "store_unknown",
                                                      "accesses",
                                                      "hitm",
                                                      "hitm_ci95.low",
                                                      "hitm_ci95.high",
                                                      "hitm_samples",
                                                      "hitm_remote_samples",
                                                      "overlapping_samples",
                                                      "possible_samples",
                                                      "cost_cycles",
                                                      "cost_s",
                                                      "latency.samples",
                                                      "latency.median",
                                                      "latency.p90",
                                                      "latency.mean",
                                                      "latency.max",
                                                      "object",
                                                      "object_offset"};

std::string memory_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string known_memory(const std::optional<double>& value) { return value ? memory_number(*value) : ""; }
std::string line_number(std::uint32_t line) { return line == 0 ? "" : std::to_string(line); }

/// One row's cells by column name.
using MemoryCells = std::map<std::string_view, std::string>;

class MemoryTable {
 public:
  MemoryTable() {
    for (const std::string_view column : columns) {
      text_ += (text_.empty() ? "" : ",") + std::string(column);
    }
    text_ += '\n';
  }
  void add(const MemoryCells& row) {
    bool first = true;
    for (const std::string_view column : columns) {
      const auto field = row.find(column);
      text_ += (first ? "" : ",") + (field == row.end() ? std::string() : csv_field(field->second));
      first = false;
    }
    text_ += '\n';
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

template <class Number>
std::string joined(const std::vector<Number>& numbers) {
  std::string text;
  for (const Number each : numbers) {
    text += (text.empty() ? "" : " ") + (each == static_cast<Number>(-1) ? std::string("?") : std::to_string(each));
  }
  return text;
}

void add_latency(MemoryCells& row, const std::optional<attribution::LatencyFigures>& latency) {
  if (latency) {
    row["latency.samples"] = std::to_string(latency->samples);
    row["latency.median"] = memory_number(latency->median);
    row["latency.p90"] = memory_number(latency->p90);
    row["latency.mean"] = memory_number(latency->mean);
    row["latency.max"] = std::to_string(latency->greatest);
  }
}

void add_figures(MemoryCells& row, const AccessFigures& figures) {
  row["samples"] = std::to_string(figures.samples);
  row["loads"] = std::to_string(figures.loads);
  row["stores"] = std::to_string(figures.stores);
  if (figures.tells_hitm()) {
    row["hitm_local"] = std::to_string(figures.hitm_local);
    row["hitm_remote"] = std::to_string(figures.hitm_remote);
  }
  row["locked"] = figures.lock_unknown < figures.samples ? std::to_string(figures.locked) : "";
  row["store_hits"] = std::to_string(figures.store_hits);
  row["store_misses"] = std::to_string(figures.store_misses);
  row["store_unknown"] = std::to_string(figures.stores - figures.store_hits - figures.store_misses);
  row["accesses"] = known_memory(figures.accesses);
  row["hitm"] = known_memory(figures.hitm);
  row["cost_cycles"] = known_memory(figures.cost_cycles);
  row["cost_s"] = known_memory(figures.cost_s);
  add_latency(row, figures.latency);
}

void add_totals(MemoryTable& table, const Memory& memory) {
  MemoryCells total = {{"part", "total"}};
  add_figures(total, memory.totals);
  table.add(total);
  MemoryCells shared = {{"part", "shared_total"}};
  add_figures(shared, memory.on_shared_lines);
  table.add(shared);
  for (const attribution::SourceRow& source : memory.sources) {
    MemoryCells row = {{"part", "source"},
                       {"name", attribution::memory_level_name(source.level)},
                       {"samples", std::to_string(source.samples)},
                       {"share", memory_number(source.share)},
                       {"accesses", known_memory(source.accesses)}};
    add_latency(row, source.latency);
    table.add(row);
  }
  for (std::size_t i = 0; i < attribution::snoops; ++i) {
    table.add({{"part", "snoop"},
               {"name", attribution::snoop_name(static_cast<attribution::Snoop>(i))},
               {"samples", std::to_string(memory.totals.snoop[i])}});
  }
  for (std::size_t i = 0; i < attribution::translations; ++i) {
    table.add({{"part", "translation"},
               {"name", attribution::translation_name(static_cast<attribution::Translation>(i))},
               {"samples", std::to_string(memory.totals.translation[i])}});
  }
}

void add_rows(MemoryTable& table, const Memory& memory) {
  for (const attribution::MemoryLine& line : memory.lines) {
    MemoryCells row = {{"part", "line"},
                       {"function", line.function},
                       {"file", line.file},
                       {"module", line.module},
                       {"line", line_number(line.line)}};
    add_figures(row, line.figures);
    table.add(row);
  }
  for (const attribution::MemoryObject& object : memory.objects) {
    MemoryCells row = {{"part", "object"}, {"name", object.name}};
    add_figures(row, object.figures);
    table.add(row);
  }
  for (const attribution::MemoryLoop& loop : memory.loops) {
    MemoryCells row = {{"part", "loop"},
                       {"name", std::to_string(loop.id)},
                       {"function", loop.function},
                       {"file", loop.file},
                       {"module", loop.module},
                       {"line", line_number(loop.line_begin)},
                       {"line_end", line_number(loop.line_end)}};
    add_figures(row, loop.figures);
    table.add(row);
  }
}

void add_shared_lines(MemoryTable& table, const Memory& memory) {
  for (std::size_t i = 0; i < memory.shared_lines.size(); ++i) {
    const attribution::SharedLine& line = memory.shared_lines[i];
    const std::string address = fmt::format("0x{:x}", line.address);
    const std::string rank = std::to_string(i + 1);
    MemoryCells row = {{"part", "shared_line"},
                       {"rank", rank},
                       {"address", address},
                       {"object", line.object},
                       {"object_offset", std::to_string(line.object_offset)},
                       {"threads", joined(line.threads)},
                       {"nodes", joined(line.nodes)},
                       {"share", line.figures.tells_hitm() ? memory_number(line.hitm_share) : ""}};
    add_figures(row, line.figures);
    table.add(row);
    for (const attribution::SharedOffset& at : line.offsets) {
      MemoryCells offset = {{"part", "shared_offset"},   {"rank", rank},
                            {"address", address},        {"offset", std::to_string(at.offset)},
                            {"field", at.field},         {"function", at.function},
                            {"file", at.file},           {"line", line_number(at.line)},
                            {"module", at.module},       {"threads", joined(at.threads)},
                            {"nodes", joined(at.nodes)}, {"processors", std::to_string(at.processors)}};
      add_figures(offset, at.figures);
      table.add(offset);
    }
  }
}

void add_pairs(MemoryTable& table, const attribution::SampledSharing& sharing) {
  const auto if_told = [&](double value) { return sharing.hitm_known ? memory_number(value) : std::string(); };
  for (const attribution::SampledPair& pair : sharing.pairs) {
    MemoryCells row = {{"part", "sampled_pair"},
                       {"producer", std::to_string(pair.producer)},
                       {"consumer", std::to_string(pair.consumer)},
                       {"hitm", known_memory(pair.hitm)},
                       {"hitm_samples", if_told(pair.hitm_samples)},
                       {"hitm_remote_samples", if_told(pair.hitm_remote_samples)},
                       {"overlapping_samples", if_told(pair.overlapping_samples)},
                       {"possible_samples", memory_number(pair.possible_samples)}};
    if (pair.hitm_ci95) {
      row["hitm_ci95.low"] = memory_number(pair.hitm_ci95->front());
      row["hitm_ci95.high"] = memory_number(pair.hitm_ci95->back());
    }
    table.add(row);
  }
}

}  // namespace

std::string memory_csv(const Memory& memory) {
  MemoryTable table;
  if (!memory.unknown.empty()) {
    table.add({{"part", "unknown"}, {"name", memory.unknown}});
    return table.take();
  }
  add_totals(table, memory);
  add_rows(table, memory);
  add_shared_lines(table, memory);
  add_pairs(table, memory.sharing);
  for (const std::string& limit : memory.limits) {
    table.add({{"part", "limit"}, {"name", limit}});
  }
  return table.take();
}

}  // namespace crosstalk::driver
