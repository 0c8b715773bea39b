// SPDX-License-Identifier: Apache-2.0
#include "attribution/strata.h"

#include <utility>

namespace crosstalk::attribution {
namespace {

constexpr unsigned line_shift = 6, page_shift = 12;
constexpr std::uint8_t flag_mask = profile::sample_suspected | profile::sample_on_stack;

// Both are distinct from each other and from 0, which means neither.
std::uint64_t line_unit(std::uint64_t address) { return ((address >> line_shift) << 2U) | 1U; }
std::uint64_t page_unit(std::uint64_t address) { return ((address >> page_shift) << 2U) | 2U; }
bool is_line(std::uint64_t unit) { return (unit & 1U) != 0; }

void add_sums(Stratum& into, const Stratum& from) {
  into.eligible += from.eligible;
  into.watched += from.watched;
  into.eligible_ns += from.eligible_ns;
  into.eligible_ns2 += from.eligible_ns2;
  into.watched_ns += from.watched_ns;
  into.watched_ns2 += from.watched_ns2;
}

}  // namespace

Strata::Strata(std::span<const profile::WatchRow> watches, std::span<const profile::ThreadRow> threads,
               StrataPolicy policy)
    : policy_(policy),
      threads_(threads.size()),
      has_units_(threads.size(), false),
      cell_of_watch_(watches.size(), none) {
  process_of_thread_.reserve(threads.size());
  for (const profile::ThreadRow& thread : threads) {
    process_of_thread_.push_back(thread.process.value);
  }
  if (policy_.by_place) {
    choose_units(watches);
  }
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const profile::WatchRow& watch = watches[i];
    if (watch.thread.value < threads.size() && takes(watch.sample_access)) {
      cell_of_watch_[i] = cell_of(watch.thread.value, watch.sample_flags, watch.sample_address);
      Stratum& sums = cells_[cell_of_watch_[i]].sums;
      const auto x = static_cast<double>(watch.sample_cpu_ns);
      ++sums.watched;
      sums.watched_ns += x;
      sums.watched_ns2 += x * x;
    }
  }
}

bool Strata::takes(AccessKind kind) const {
  return policy_.accesses == StrataPolicy::Of::any ||
         (policy_.accesses == StrataPolicy::Of::loads ? loads(kind) : stores(kind));
}

// Lines first; a page is judged by the watches on its other lines.
void Strata::choose_units(std::span<const profile::WatchRow> watches) {
  const auto choose = [&](auto unit_of_address) {
    std::map<std::pair<std::uint32_t, Unit>, std::uint64_t> counts;
    for (const profile::WatchRow& watch : watches) {
      if (watch.thread.value < process_of_thread_.size() && takes(watch.sample_access) &&
          unit_of(watch.thread.value, watch.sample_address) == rest) {
        ++counts[{watch.thread.value, unit_of_address(watch.sample_address)}];
      }
    }
    for (const auto& [key, count] : counts) {
      if (count >= unit_watches) {
        units_.insert(key);
        has_units_[key.first] = true;
      }
    }
  };
  choose(line_unit);
  choose(page_unit);
}

Strata::Unit Strata::unit_of(std::uint32_t thread, std::uint64_t address) const {
  if (!has_units_[thread]) {
    return rest;
  }
  for (const Unit unit : {line_unit(address), page_unit(address)}) {
    if (units_.contains({thread, unit})) {
      return unit;
    }
  }
  return rest;
}

void Strata::add(const profile::SampleRow& sample) {
  if (sample.thread.value >= process_of_thread_.size()) {
    return;
  }
  const auto x = static_cast<double>(sample.cpu_ns);
  threads_[sample.thread.value].ns += x;
  threads_[sample.thread.value].ns2 += x * x;
  if ((sample.flags & profile::sample_eligible) == 0 || !takes(sample.access)) {
    return;
  }
  Stratum& sums = cells_[cell_of(sample.thread.value, sample.flags, sample.address)].sums;
  ++sums.eligible;
  sums.eligible_ns += x;
  sums.eligible_ns2 += x * x;
}

void Strata::finish() {
  std::map<std::pair<std::uint32_t, Unit>, std::uint32_t> units;          // (thread, unit) -> its best watched stratum
  std::map<std::pair<std::uint32_t, std::uint8_t>, std::uint32_t> pools;  // (process, flags) -> stratum
  for (Cell& cell : cells_) {
    if (cell.sums.watched >= least_watches) {
      join(cell, new_stratum());
      Stratum& stratum = strata_[cell.stratum];
      stratum.thread = kinds_[cell.kind].thread;
      stratum.one_line = is_line(cell.unit);
      const auto [it, fresh] = units.try_emplace({stratum.thread, cell.unit}, cell.stratum);
      if (!fresh && strata_[it->second].watched < stratum.watched) {
        it->second = cell.stratum;
      }
    }
  }
  for (Cell& cell : cells_) {
    if (cell.stratum == none) {
      join_neighbours(cell, units, pools);
    }
  }
  for (const Stratum& stratum : strata_) {
    eligible_ns_ += stratum.eligible_ns;
    unwatched_ns_ += stratum.watched_ns > 0 ? 0 : stratum.eligible_ns;
  }
}

void Strata::join_neighbours(Cell& cell, const std::map<std::pair<std::uint32_t, Unit>, std::uint32_t>& units,
                             std::map<std::pair<std::uint32_t, std::uint8_t>, std::uint32_t>& pools) {
  const Kind& kind = kinds_[cell.kind];
  if (cell.unit != rest) {
    if (const auto it = units.find({kind.thread, cell.unit}); it != units.end()) {
      join(cell, it->second);
      return;
    }
  }
  const auto [pool, fresh] = pools.try_emplace({process_of_thread_[kind.thread], kind.flags}, none);
  if (fresh) {
    pool->second = new_stratum();
  }
  join(cell, pool->second);
}

std::uint32_t Strata::of_watch(std::size_t watch) const {
  const std::uint32_t cell = watch < cell_of_watch_.size() ? cell_of_watch_[watch] : none;
  return cell == none ? none : cells_[cell].stratum;
}

std::uint32_t Strata::kind_of(std::uint32_t thread, std::uint8_t flags) {
  const auto relevant = static_cast<std::uint8_t>(flags & flag_mask);
  const auto [it, fresh] = kind_ids_.try_emplace((static_cast<std::uint64_t>(thread) << 8U) | relevant,
                                                 static_cast<std::uint32_t>(kinds_.size()));
  if (fresh) {
    rest_cells_.push_back(static_cast<std::uint32_t>(cells_.size()));
    cells_.push_back({it->second, rest, {}, none});
    kinds_.push_back({thread, relevant});
  }
  return it->second;
}

std::uint32_t Strata::cell_of(std::uint32_t thread, std::uint8_t flags, std::uint64_t address) {
  const std::uint32_t kind = kind_of(thread, flags);
  const Unit unit = unit_of(thread, address);
  if (unit == rest) {
    return rest_cells_[kind];
  }
  const auto [it, fresh] = unit_cells_.try_emplace({kind, unit}, static_cast<std::uint32_t>(cells_.size()));
  if (fresh) {
    cells_.push_back({kind, unit, {}, none});
  }
  return it->second;
}

void Strata::join(Cell& cell, std::uint32_t stratum) {
  cell.stratum = stratum;
  add_sums(strata_[stratum], cell.sums);
}

std::uint32_t Strata::new_stratum() {
  strata_.emplace_back();
  strata_.back().expanded = policy_.expanded;
  return static_cast<std::uint32_t>(strata_.size() - 1);
}

}  // namespace crosstalk::attribution
