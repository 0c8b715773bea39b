// SPDX-License-Identifier: Apache-2.0
#include "driver/json/memory.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "driver/json/values.h"
#include "driver/words/names.h"

namespace crosstalk::driver {

namespace {

using attribution::AccessFigures;

Json latency(const std::optional<attribution::LatencyFigures>& figures) {
  if (!figures) {
    return nullptr;
  }
  return {{"samples", figures->samples},
          {"median", number(figures->median)},
          {"p90", number(figures->p90)},
          {"mean", number(figures->mean)},
          {"max", figures->greatest}};
}

/// Returns the nonzero counts by name.
template <std::size_t Size, class Name>
Json by_name(const std::array<std::uint64_t, Size>& counts, const Name& name) {
  Json object = Json::object();
  for (std::size_t i = 0; i < Size; ++i) {
    if (counts[i] != 0) {
      object[name(i)] = counts[i];
    }
  }
  return object;
}

Json figures(const AccessFigures& of) {
  const auto level = [](std::size_t i) {
    return attribution::memory_level_name(static_cast<attribution::MemoryLevel>(i));
  };
  const auto hitm = [&](std::uint64_t count) { return of.tells_hitm() ? Json(count) : Json(nullptr); };
  return {
      {"samples", of.samples},
      {"loads", of.loads},
      {"stores", of.stores},
      {"without_address", of.without_address},
      {"found", by_name(of.found, level)},
      {"missed", by_name(of.missed, level)},
      {"snoop",
       by_name(of.snoop, [](std::size_t i) { return attribution::snoop_name(static_cast<attribution::Snoop>(i)); })},
      {"translation",
       by_name(of.translation,
               [](std::size_t i) { return attribution::translation_name(static_cast<attribution::Translation>(i)); })},
      {"hitm_local", hitm(of.hitm_local)},
      {"hitm_remote", hitm(of.hitm_remote)},
      {"locked", of.lock_unknown < of.samples ? Json(of.locked) : Json(nullptr)},
      {"blocked_data", of.blocked_data},
      {"blocked_address", of.blocked_address},
      {"store_hits", of.store_hits},
      {"store_misses", of.store_misses},
      {"store_unknown", of.stores - of.store_hits - of.store_misses},
      {"accesses", known(of.accesses)},
      {"hitm", known(of.hitm)},
      {"cost_cycles", known(of.cost_cycles)},
      {"cost_s", known(of.cost_s)},
      {"latency", latency(of.latency)}};
}

Json events(const attribution::Memory& memory) {
  Json list = Json::array();
  for (const attribution::MemoryEvent& event : memory.events) {
    list.push_back(
        {{"name", event.name},
         {"samples", event.samples},
         {"least_latency_cycles", event.least_latency_cycles == 0 ? Json(nullptr) : Json(event.least_latency_cycles)},
         {"precise", event.at_access}});
  }
  return list;
}

Json sources(const attribution::Memory& memory) {
  Json list = Json::array();
  for (const attribution::SourceRow& row : memory.sources) {
    list.push_back({{"level", attribution::memory_level_name(row.level)},
                    {"samples", row.samples},
                    {"share", number(row.share)},
                    {"accesses", known(row.accesses)},
                    {"latency", latency(row.latency)}});
  }
  return list;
}

Json lines(const attribution::Memory& memory) {
  Json list = Json::array();
  for (const attribution::MemoryLine& row : memory.lines) {
    list.push_back({{"function", known_text(row.function)},
                    {"file", known_text(row.file)},
                    {"line", known_line(row.line)},
                    {"module", known_text(row.module)},
                    {"figures", figures(row.figures)},
                    {"call_paths", call_paths(row.call_paths)}});
  }
  return list;
}

Json objects(const attribution::Memory& memory) {
  Json list = Json::array();
  for (const attribution::MemoryObject& row : memory.objects) {
    list.push_back({{"name", row.name},
                    {"kind", known_text(object_kind_name(row.kind))},
                    {"size", row.size ? Json(*row.size) : Json(nullptr)},
                    {"figures", figures(row.figures)}});
  }
  return list;
}

Json loops(const attribution::Memory& memory) {
  Json list = Json::array();
  for (const attribution::MemoryLoop& row : memory.loops) {
    list.push_back({{"id", row.id},
                    {"function", known_text(row.function)},
                    {"file", known_text(row.file)},
                    {"line_begin", known_line(row.line_begin)},
                    {"line_end", known_line(row.line_end)},
                    {"depth", row.depth},
                    {"module", known_text(row.module)},
                    {"figures", figures(row.figures)}});
  }
  return list;
}

Json nodes(const std::vector<std::int32_t>& numbers) {
  Json list = Json::array();
  for (const std::int32_t node : numbers) {
    list.push_back(node < 0 ? Json(nullptr) : Json(node));
  }
  return list;
}

Json offsets(const attribution::SharedLine& line) {
  Json list = Json::array();
  for (const attribution::SharedOffset& row : line.offsets) {
    list.push_back({{"offset", row.offset},
                    {"field", known_text(row.field)},
                    {"function", known_text(row.function)},
                    {"file", known_text(row.file)},
                    {"line", known_line(row.line)},
                    {"module", known_text(row.module)},
                    {"instruction", row.instruction},
                    {"threads", row.threads},
                    {"nodes", nodes(row.nodes)},
                    {"processors", row.processors},
                    {"hitm_local_latency", known(row.hitm_local_latency)},
                    {"hitm_remote_latency", known(row.hitm_remote_latency)},
                    {"other_latency", known(row.other_latency)},
                    {"figures", figures(row.figures)}});
  }
  return list;
}

Json shared_lines(const attribution::Memory& memory) {
  Json list = Json::array();
  for (const attribution::SharedLine& row : memory.shared_lines) {
    list.push_back({{"address", row.address},
                    {"pid", row.pid ? Json(*row.pid) : Json(nullptr)},
                    {"object", known_text(row.object)},
                    {"object_offset", row.object_offset},
                    {"threads", row.threads},
                    {"nodes", nodes(row.nodes)},
                    {"hitm_share", row.figures.tells_hitm() ? number(row.hitm_share) : Json(nullptr)},
                    {"figures", figures(row.figures)},
                    {"offsets", offsets(row)}});
  }
  return list;
}

Json sharing(const attribution::SampledSharing& found) {
  Json pairs = Json::array();
  for (const attribution::SampledPair& pair : found.pairs) {
    pairs.push_back(
        {{"producer", pair.producer},
         {"consumer", pair.consumer},
         {"hitm", known(pair.hitm)},
         {"hitm_ci95", pair.hitm_ci95 ? Json::array({number(pair.hitm_ci95->front()), number(pair.hitm_ci95->back())})
                                      : Json(nullptr)},
         {"hitm_samples", found.hitm_known ? number(pair.hitm_samples) : Json(nullptr)},
         {"hitm_remote_samples", found.hitm_known ? number(pair.hitm_remote_samples) : Json(nullptr)},
         {"overlapping_samples", found.hitm_known ? number(pair.overlapping_samples) : Json(nullptr)},
         {"possible_samples", number(pair.possible_samples)}});
  }
  return {{"basis", "samples_near_in_time"},
          {"window_s", number(found.window_s)},
          {"hitm_known", found.hitm_known},
          {"hitm_samples", found.hitm_known ? Json(found.hitm_samples) : Json(nullptr)},
          {"unattributed_samples", found.hitm_known ? Json(found.unattributed_samples) : Json(nullptr)},
          {"unattributed_hitm", known(found.unattributed_hitm)},
          {"pairs", pairs}};
}

}  // namespace

Json memory_json(const attribution::Memory& memory) {
  if (!memory.unknown.empty()) {
    return {{"unknown", memory.unknown}};
  }
  return {{"unknown", nullptr},
          {"events", events(memory)},
          {"totals", figures(memory.totals)},
          {"shared_totals", figures(memory.on_shared_lines)},
          {"sources", sources(memory)},
          {"lines", lines(memory)},
          {"objects", objects(memory)},
          {"loops", loops(memory)},
          {"shared_lines", shared_lines(memory)},
          {"rows",
           {{"lines", memory.all_lines},
            {"objects", memory.all_objects},
            {"loops", memory.all_loops},
            {"shared_lines", memory.all_shared_lines}}},
          {"sampled_sharing", sharing(memory.sharing)},
          {"limits", memory.limits}};
}

}  // namespace crosstalk::driver
