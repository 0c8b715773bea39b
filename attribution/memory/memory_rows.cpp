// SPDX-License-Identifier: Apache-2.0
#include "attribution/memory/memory_rows.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

namespace crosstalk::attribution {
namespace {

constexpr std::size_t most_chains = 8, most_paths = 3;

/// Sorts the weightiest first: by cost, then by samples; equal ones keep their order. `sums_of(row)` returns a row's
/// sums.
template <class Row, class SumsOf>
std::uint64_t cut(std::vector<Row>& rows, std::size_t max_rows, const SumsOf& sums_of) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    const AccessSums& one = sums_of(a);
    const AccessSums& other = sums_of(b);
    return std::pair(one.cost_cycles(), one.samples()) > std::pair(other.cost_cycles(), other.samples());
  });
  const std::uint64_t all = rows.size();
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(max_rows, rows.size())), rows.end());
  return all;
}

bool same(const symbolizer::Frame& a, const symbolizer::Frame& b) {
  return a.function == b.function && a.source == b.source;
}

}  // namespace

MemoryObjects::Place MemoryObjects::of(const MemorySample& sample) {
  if (sample.in_kernel_memory()) {
    return {kernel_memory, 0};
  }
  const DataRef ref = objects_.resolve(sample.thread, sample.time_ns, sample.address);
  return {ref.object, ref.offset};
}

std::string MemoryObjects::name(std::uint32_t object) const {
  return object == kernel_memory ? "kernel memory" : objects_[object].name;
}

ObjectKind MemoryObjects::kind(std::uint32_t object) const {
  return object == kernel_memory ? ObjectKind::unknown : objects_[object].kind;
}

std::optional<std::uint64_t> MemoryObjects::size(std::uint32_t object) const {
  return object == kernel_memory ? std::nullopt : objects_[object].bytes;
}

std::string MemoryObjects::field(Place place) {
  return place.object == kernel_memory ? std::string() : objects_.field(place.object, place.offset);
}

LineRows::LineRows(std::span<const PlacedSample> samples, const MemorySites& sites, std::size_t max_rows)
    : sites_(sites) {
  std::map<std::tuple<std::string, std::uint32_t, std::string, std::string>, std::size_t> ids;
  std::unordered_map<std::uint32_t, std::size_t> row_of;
  for (const PlacedSample& placed : samples) {
    const auto [known, fresh] = row_of.try_emplace(placed.site);
    if (fresh) {
      const MemorySite& site = sites[placed.site];
      known->second = ids.try_emplace({site.file, site.line, site.function, site.module}, rows_.size()).first->second;
      if (known->second == rows_.size()) {
        rows_.push_back({placed.site, {}, {}, 0});
      }
    }
    Gathered& row = rows_[known->second];
    row.sums.add(*placed.sample, placed.source);
    if (placed.sample->call_chain.value != 0) {
      Chain& chain = row.chains[placed.sample->call_chain.value];
      chain.first = chain.samples++ == 0 ? placed.sample : chain.first;
      ++row.with_chain;
    }
  }
  all_ = cut(rows_, max_rows, [](const Gathered& row) -> const AccessSums& { return row.sums; });
}

std::vector<std::pair<std::uint32_t, LineRows::Chain>> LineRows::weightiest(const Gathered& row) {
  std::vector<std::pair<std::uint32_t, Chain>> chains(row.chains.begin(), row.chains.end());
  std::stable_sort(chains.begin(), chains.end(),
                   [](const auto& a, const auto& b) { return a.second.samples > b.second.samples; });
  chains.resize(std::min(chains.size(), most_chains));
  return chains;
}

std::unordered_set<std::uint32_t> LineRows::wanted_chains() const {
  std::unordered_set<std::uint32_t> wanted;
  for (const Gathered& row : rows_) {
    for (const auto& [chain, of] : weightiest(row)) {
      wanted.insert(chain);
    }
  }
  return wanted;
}

/// Joins chains that differ only in addresses: they are one path to a reader.
std::vector<CallPath> LineRows::paths_of(const Gathered& row, const Chains& chains, const ProgramView& view) {
  std::vector<CallPath> paths;
  for (const auto& [id, chain] : weightiest(row)) {
    const auto addresses = chains.find(id);
    if (addresses == chains.end() || addresses->second.empty()) {
      continue;
    }
    const Moment moment = view.moment(chain.first->thread, chain.first->time_ns);
    const std::uint64_t innermost = addresses->second.front() - (chain.first->in_kernel ? 1 : 0);
    std::vector<symbolizer::Frame> frames = call_path(view, moment, innermost, addresses->second);
    const double weight = static_cast<double>(chain.samples) / static_cast<double>(row.with_chain);
    const auto known = std::find_if(paths.begin(), paths.end(), [&](const CallPath& path) {
      return std::equal(path.frames.begin(), path.frames.end(), frames.begin(), frames.end(), same);
    });
    if (known != paths.end()) {
      known->weight += weight;
    } else {
      paths.push_back({std::move(frames), weight});
    }
  }
  std::stable_sort(paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.weight > b.weight; });
  paths.resize(std::min(paths.size(), most_paths));
  return paths;
}

Cut<MemoryLine> LineRows::finish(const Chains& chains, const ProgramView& view, std::uint32_t cycle_ps) {
  Cut<MemoryLine> lines{{}, all_};
  for (Gathered& row : rows_) {
    const MemorySite& site = sites_[row.site];
    lines.rows.push_back(
        {site.function, site.file, site.module, site.line, row.sums.finish(cycle_ps), paths_of(row, chains, view)});
  }
  return lines;
}

Cut<MemoryObject> memory_objects(std::span<const PlacedSample> samples, MemoryObjects& objects, std::size_t max_rows,
                                 std::uint32_t cycle_ps) {
  std::unordered_map<std::uint32_t, std::size_t> row_of;
  std::vector<std::pair<std::uint32_t, AccessSums>> rows;
  for (const PlacedSample& placed : samples) {
    if (placed.sample->address == 0) {
      continue;
    }
    const std::uint32_t object = objects.of(*placed.sample).object;
    const auto [known, fresh] = row_of.try_emplace(object, rows.size());
    if (fresh) {
      rows.emplace_back(object, AccessSums());
    }
    rows[known->second].second.add(*placed.sample, placed.source);
  }
  const std::uint64_t all = cut(rows, max_rows, [](const auto& row) -> const AccessSums& { return row.second; });
  Cut<MemoryObject> result{{}, all};
  for (auto& [object, sums] : rows) {
    result.rows.push_back({objects.name(object), objects.kind(object), objects.size(object), sums.finish(cycle_ps)});
  }
  return result;
}

Cut<MemoryLoop> memory_loops(std::span<const PlacedSample> samples, const MemorySites& sites,
                             std::span<const LoopRow> loops, std::size_t max_rows, std::uint32_t cycle_ps) {
  std::map<std::uint32_t, AccessSums> by_loop;
  for (const PlacedSample& placed : samples) {
    if (const std::uint32_t loop = sites[placed.site].loop; loop < loops.size()) {
      by_loop[loop].add(*placed.sample, placed.source);
    }
  }
  std::vector<std::pair<std::uint32_t, AccessSums>> rows(by_loop.begin(), by_loop.end());
  const std::uint64_t all = cut(rows, max_rows, [](const auto& row) -> const AccessSums& { return row.second; });
  Cut<MemoryLoop> result{{}, all};
  for (auto& [loop, sums] : rows) {
    const LoopRow& row = loops[loop];
    result.rows.push_back(
        {row.id, row.function, row.file, row.module, row.line_begin, row.line_end, row.depth, sums.finish(cycle_ps)});
  }
  return result;
}

std::vector<SourceRow> source_rows(std::span<const PlacedSample> samples) {
  struct Level {
    std::uint64_t samples = 0;
    double accesses = 0;
    bool all_count = true;
    std::vector<std::uint32_t> latencies;
  };
  std::array<Level, memory_levels> levels;
  std::uint64_t all = 0;
  for (const PlacedSample& placed : samples) {
    const MemorySample& sample = *placed.sample;
    if (!loads(sample.access)) {
      continue;
    }
    Level& level = levels[static_cast<std::size_t>(placed.source.found)];
    ++level.samples;
    ++all;
    level.accesses += static_cast<double>(sample.weight);
    level.all_count = level.all_count && sample.counts_accesses();
    if (sample.latency_cycles != 0) {
      level.latencies.push_back(sample.latency_cycles);
    }
  }
  std::vector<SourceRow> rows;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    Level& level = levels[i];
    if (level.samples > 0) {
      rows.push_back(
          {static_cast<MemoryLevel>(i), level.samples, static_cast<double>(level.samples) / static_cast<double>(all),
           level.all_count ? std::optional(level.accesses) : std::nullopt, latency_figures(level.latencies)});
    }
  }
  return rows;
}

}  // namespace crosstalk::attribution
