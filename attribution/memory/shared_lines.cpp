// SPDX-License-Identifier: Apache-2.0
#include "attribution/memory/shared_lines.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace crosstalk::attribution {
namespace {

/// The accessing threads, and their processors.
struct Visitors {
  std::set<std::uint32_t> threads;
  std::set<std::uint16_t> processors;
  void add(const MemorySample& sample) {
    threads.insert(sample.thread.value);
    processors.insert(sample.cpu);
  }
  [[nodiscard]] std::vector<std::uint32_t> thread_list() const { return {threads.begin(), threads.end()}; }
  [[nodiscard]] std::vector<std::int32_t> nodes(const profile::Topology& topology) const {
    std::set<std::int32_t> nodes;
    for (const std::uint16_t cpu : processors) {
      const profile::CpuPlace* const place = topology.find(cpu);
      nodes.insert(place == nullptr ? -1 : place->node);
    }
    return {nodes.begin(), nodes.end()};
  }
};

struct OffsetSums {
  AccessSums sums;
  Visitors visitors;
  MemoryObjects::Place place;
  std::vector<std::uint32_t> hitm_local, hitm_remote, other;  // latencies of loads
  void add(const PlacedSample& placed) {
    sums.add(*placed.sample, placed.source);
    visitors.add(*placed.sample);
    if (loads(placed.sample->access) && placed.sample->latency_cycles != 0) {
      const Hitm hitm = placed.source.hitm();
      (hitm == Hitm::none    ? other
       : hitm == Hitm::local ? hitm_local
                             : hitm_remote)
          .push_back(placed.sample->latency_cycles);
    }
  }
};

std::optional<double> median_of(std::vector<std::uint32_t>& latencies) {
  const auto figures = latency_figures(latencies);
  return figures ? std::optional(figures->median) : std::nullopt;
}

SharedOffset offset_row(std::uint32_t offset, std::uint32_t site_id, OffsetSums& sums,
                        const SharedLineSources& sources) {
  const MemorySite& site = sources.sites[site_id];
  SharedOffset row;
  row.offset = offset;
  row.field = sources.objects.field(sums.place);
  row.function = site.function;
  row.file = site.file;
  row.module = site.module;
  row.line = site.line;
  row.instruction = site.instruction;
  row.threads = sums.visitors.thread_list();
  row.nodes = sums.visitors.nodes(sources.topology);
  row.processors = sums.visitors.processors.size() - sums.visitors.processors.count(profile::unknown_cpu);
  row.figures = sums.sums.finish(sources.cycle_ps);
  row.hitm_local_latency = median_of(sums.hitm_local);
  row.hitm_remote_latency = median_of(sums.hitm_remote);
  row.other_latency = median_of(sums.other);
  return row;
}

void sort_offsets(std::vector<SharedOffset>& offsets) {
  std::stable_sort(offsets.begin(), offsets.end(), [](const SharedOffset& a, const SharedOffset& b) {
    return std::pair(a.figures.hitm_samples(), a.figures.samples) >
           std::pair(b.figures.hitm_samples(), b.figures.samples);
  });
}

SharedLine line_row(const SampledLines& lines, SampledLines::Line line, const SharedLineSources& sources) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, OffsetSums> by_offset;  // and site
  AccessSums sums;
  Visitors visitors;
  const MemorySample* lowest = nullptr;
  const std::uint64_t bytes = lines.line_bytes();
  for (const std::uint32_t index : line) {
    const PlacedSample& placed = lines[index];
    const MemorySample& sample = *placed.sample;
    OffsetSums& at = by_offset[{static_cast<std::uint32_t>(sample.address % bytes), placed.site}];
    at.place = at.sums.samples() == 0 ? sources.objects.of(sample) : at.place;
    at.add(placed);
    sums.add(sample, placed.source);
    visitors.add(sample);
    lowest = lowest == nullptr || sample.address % bytes < lowest->address % bytes ? &sample : lowest;
  }
  SharedLine row;
  row.address = lowest->address / bytes * bytes;
  if (!lowest->in_kernel_memory()) {
    row.pid = sources.view.processes()[sources.view.threads()[lowest->thread.value].process.value].pid;
  }
  const MemoryObjects::Place place = sources.objects.of(*lowest);
  row.object = sources.objects.name(place.object);
  row.object_offset = place.offset;
  row.threads = visitors.thread_list();
  row.nodes = visitors.nodes(sources.topology);
  row.figures = sums.finish(sources.cycle_ps);
  for (auto& [key, at] : by_offset) {
    row.offsets.push_back(offset_row(key.first, key.second, at, sources));
  }
  sort_offsets(row.offsets);
  return row;
}

}  // namespace

SharedLines shared_lines(const SampledLines& lines, const SharedLineSources& sources, std::size_t max_rows) {
  std::vector<std::pair<LineSummary, SampledLines::Line>> shared;
  AccessSums sums;
  std::uint64_t hitm = 0;
  for (const SampledLines::Line line : lines.lines()) {
    const LineSummary summary = summary_of(lines, line);
    if (!summary.shared()) {
      continue;
    }
    shared.emplace_back(summary, line);
    hitm += summary.hitm;
    for (const std::uint32_t index : line) {
      sums.add(*lines[index].sample, lines[index].source);
    }
  }
  std::stable_sort(shared.begin(), shared.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.hitm, a.second.size()) > std::pair(b.first.hitm, b.second.size());
  });
  SharedLines result;
  result.lines.all = shared.size();
  for (std::size_t i = 0; i < std::min(max_rows, shared.size()); ++i) {
    SharedLine row = line_row(lines, shared[i].second, sources);
    row.hitm_share = hitm > 0 ? static_cast<double>(shared[i].first.hitm) / static_cast<double>(hitm) : 0;
    result.lines.rows.push_back(std::move(row));
  }
  result.all = sums.finish(sources.cycle_ps);
  return result;
}

}  // namespace crosstalk::attribution
