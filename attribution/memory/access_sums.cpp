// SPDX-License-Identifier: Apache-2.0
#include "attribution/memory/access_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace crosstalk::attribution {
namespace {

constexpr double ps_per_s = 1e12;

template <class Table, class Index>
void count(Table& table, Index index) {
  ++table[static_cast<std::size_t>(index)];
}

void add_load(const DataSource& source, AccessFigures& figures) {
  ++figures.loads;
  if (source.missed != MemoryLevel::unknown) {
    count(figures.missed, source.missed);
  } else {
    count(figures.found, source.found);
  }
  count(figures.snoop, source.snoop);
  figures.hitm_local += source.hitm() == Hitm::local ? 1 : 0;
  figures.hitm_remote += source.hitm() == Hitm::remote ? 1 : 0;
  figures.blocked_data += source.blocked_data ? 1 : 0;
  figures.blocked_address += source.blocked_address ? 1 : 0;
}

void add_store(const DataSource& source, AccessFigures& figures) {
  ++figures.stores;
  figures.store_hits += source.found == MemoryLevel::l1 ? 1 : 0;
  figures.store_misses += source.missed == MemoryLevel::l1 ? 1 : 0;
}

}  // namespace

std::optional<LatencyFigures> latency_figures(std::vector<std::uint32_t>& latencies) {
  if (latencies.empty()) {
    return std::nullopt;
  }
  std::sort(latencies.begin(), latencies.end());
  const auto quantile = [&](double part) {
    const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(latencies.size())));
    return static_cast<double>(latencies[std::max<std::size_t>(rank, 1) - 1]);
  };
  constexpr double half = 0.5, nine_tenths = 0.9;
  LatencyFigures figures;
  figures.samples = latencies.size();
  figures.median = quantile(half);
  figures.p90 = quantile(nine_tenths);
  figures.mean = std::accumulate(latencies.begin(), latencies.end(), 0.0) / static_cast<double>(latencies.size());
  figures.greatest = latencies.back();
  return figures;
}

void AccessSums::add(const MemorySample& sample, const DataSource& source) {
  ++figures_.samples;
  figures_.without_address += sample.address == 0 ? 1 : 0;
  figures_.locked += source.locked ? 1 : 0;
  figures_.lock_unknown += source.lock_known ? 0 : 1;
  count(figures_.translation, source.translation);
  const auto weight = static_cast<double>(sample.weight);
  accesses_ += weight;
  all_count_ = all_count_ && sample.counts_accesses();
  if (stores(sample.access)) {
    add_store(source, figures_);
  }
  if (!loads(sample.access)) {
    return;
  }
  add_load(source, figures_);
  hitm_ += source.hitm() != Hitm::none ? weight : 0;
  if (sample.latency_cycles != 0) {
    latencies_.push_back(sample.latency_cycles);
    cost_cycles_ += weight * sample.latency_cycles;
  }
}

AccessFigures AccessSums::finish(std::uint32_t cycle_ps) {
  AccessFigures figures = figures_;
  figures.latency = latency_figures(latencies_);
  if (all_count_ && figures.samples > 0) {
    figures.accesses = accesses_;
    figures.hitm = figures.tells_hitm() ? std::optional(hitm_) : std::nullopt;
    if (figures.latency) {
      figures.cost_cycles = cost_cycles_;
      figures.cost_s = cycle_ps != 0 ? std::optional(cost_cycles_ * cycle_ps / ps_per_s) : std::nullopt;
    }
  }
  return figures;
}

}  // namespace crosstalk::attribution
