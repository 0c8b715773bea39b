// SPDX-License-Identifier: Apache-2.0
#include "attribution/samples/strata.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "attribution/samples/arming.h"

namespace crosstalk::attribution {
namespace {

constexpr unsigned line_shift = 6, stratum_page_shift = 12;
constexpr std::uint8_t flag_mask = profile::sample_suspected | profile::sample_on_stack;

// Distinct from each other, and from 0, which means neither.
std::uint64_t line_unit(std::uint64_t address) { return ((address >> line_shift) << 2U) | 1U; }
std::uint64_t page_unit(std::uint64_t address) { return ((address >> stratum_page_shift) << 2U) | 2U; }
constexpr std::uint64_t in_common = std::uint64_t{1} << 63U;  // of a unit: several threads' watches have chosen it
bool is_line(std::uint64_t unit) { return (unit & 1U) != 0; }
bool is_common(std::uint64_t unit) { return (unit & in_common) != 0; }

void add_sums(Stratum& into, const Stratum& from) {
  into.eligible += from.eligible;
  into.watched += from.watched;
  into.eligible_weight += from.eligible_weight;
  into.eligible_weight2 += from.eligible_weight2;
  into.watched_weight += from.watched_weight;
  into.watched_weight2 += from.watched_weight2;
}

void add_eligible(Stratum& into, std::uint64_t samples, double weight, double weight2) {
  into.eligible += samples;
  into.eligible_weight += weight;
  into.eligible_weight2 += weight2;
}

}  // namespace

Strata::Strata(std::span<const profile::WatchRow> watches, std::span<const profile::ThreadRow> threads,
               StrataPolicy policy)
    : policy_(policy),
      by_access_(
          std::any_of(watches.begin(), watches.end(), [](const auto& watch) { return watch.probe.has_value(); })),
      threads_(threads.size()),
      watched_(watches.size()) {
  process_of_thread_.reserve(threads.size());
  for (const profile::ThreadRow& thread : threads) {
    process_of_thread_.push_back(thread.process.value);
  }
  const ArmingFailures failures(watches);
  if (policy_.by_place) {
    choose_units(watches, failures);
  }
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const profile::WatchRow& watch = watches[i];
    if (watch.thread.value < threads.size() && takes(watch.sample_access) && !failures.misses_threads(watch)) {
      note_line(watch.thread.value, watch.sample_flags, watch.sample_address);
      const profile::Weight weight = watch.sample_weight();
      watched_[i] = {cell_of(kind_of_sample(watch.thread, watch.sample_flags, weight.unit, watch.sample_access),
                             watch.sample_address),
                     watch.sample_address, static_cast<double>(weight.value), arming_of(watch).chance(1)};
    }
  }
}

Strata::Kind Strata::kind_of_sample(ThreadId thread, std::uint8_t flags, profile::WeightUnit unit,
                                    AccessKind access) const {
  return {thread.value, flags, unit, (is_count(unit) || by_access_) && access == AccessKind::store};
}

bool Strata::takes(AccessKind kind) const {
  return policy_.accesses == StrataPolicy::Of::any ||
         (policy_.accesses == StrataPolicy::Of::loads ? loads(kind) : stores(kind));
}

// Chooses lines first; the watches on a page's other lines decide on the page. For both, chooses single threads' units
// first, then those of all remaining threads of a process together.
void Strata::choose_units(std::span<const profile::WatchRow> watches, const ArmingFailures& failures) {
  const auto choose = [&](Units& units, std::uint32_t least, auto whose, auto unit_of_address) {
    std::map<std::pair<std::uint32_t, Unit>, double> looks;
    for (const profile::WatchRow& watch : watches) {
      if (watch.thread.value < process_of_thread_.size() && takes(watch.sample_access) &&
          !failures.misses_threads(watch) && unit_of(watch.thread.value, watch.sample_address) == rest) {
        looks[{whose(watch.thread.value), unit_of_address(watch.sample_address)}] += arming_of(watch).chance(1);
      }
    }
    for (const auto& [key, sum] : looks) {
      if (sum >= least) {
        units.insert(key);
      }
    }
  };
  const auto own = [](std::uint32_t thread) { return thread; };
  const auto process = [&](std::uint32_t thread) { return process_of_thread_[thread]; };
  choose(units_, unit_watches, own, line_unit);
  choose(common_units_, common_unit_watches, process, line_unit);
  choose(units_, unit_watches, own, page_unit);
  choose(common_units_, common_unit_watches, process, page_unit);
}

Strata::Unit Strata::unit_of(std::uint32_t thread, std::uint64_t address) const {
  for (const Unit unit : {line_unit(address), page_unit(address)}) {
    if (units_.contains({thread, unit})) {
      return unit;
    }
    if (common_units_.contains({process_of_thread_[thread], unit})) {
      return unit | in_common;
    }
  }
  return rest;
}

void Strata::add(const profile::SampleRow& sample) {
  if (sample.thread.value >= process_of_thread_.size()) {
    return;
  }
  const profile::Weight weight = sample.weight();
  const auto x = static_cast<double>(weight.value);
  if (is_time(weight.unit)) {
    threads_[sample.thread.value].ns += x;
    threads_[sample.thread.value].ns2 += x * x;
  }
  if ((sample.flags & profile::sample_eligible) == 0 || !takes(sample.access)) {
    return;
  }
  note_line(sample.thread.value, sample.flags, sample.address);
  const std::uint32_t cell =
      cell_of(kind_of_sample(sample.thread, sample.flags, weight.unit, sample.access), sample.address);
  if ((sample.flags & profile::sample_suspected) != 0) {
    add_eligible(cells_[cell].sums, 1, x, x * x);
    return;
  }
  Sums& sums = not_suspected_[{cell, sample.address >> line_shift}];
  ++sums.samples;
  sums.weight += x;
  sums.weight2 += x * x;
}

void Strata::note_line(std::uint32_t thread, std::uint8_t flags, std::uint64_t address) {
  if ((flags & profile::sample_suspected) != 0) {
    suspected_.emplace(process_of_thread_[thread], address >> line_shift);
  }
}

/// The cell of a sample in hindsight; `cell` is the one by the suspicion at its time.
std::uint32_t Strata::in_hindsight(std::uint32_t cell, std::uint64_t address) {
  Kind kind = kinds_[cells_[cell].kind];
  const bool suspected = suspected_.contains({process_of_thread_[kind.thread], address >> line_shift});
  kind.flags = static_cast<std::uint8_t>(kind.flags | profile::sample_suspected);
  return suspected ? cell_of(kind, address) : cell;
}

void Strata::settle_samples() {
  for (const auto& [place, sums] : not_suspected_) {
    const std::uint32_t cell = in_hindsight(place.first, place.second << line_shift);
    add_eligible(cells_[cell].sums, sums.samples, sums.weight, sums.weight2);
  }
  not_suspected_.clear();
}

void Strata::settle_watches() {
  for (Watched& watch : watched_) {
    if (watch.cell != none) {
      watch.cell = in_hindsight(watch.cell, watch.address);
      Stratum& sums = cells_[watch.cell].sums;
      ++sums.watched;
      cells_[watch.cell].looks += watch.look;
      sums.watched_weight += watch.weight;
      sums.watched_weight2 += watch.weight * watch.weight;
    }
  }
}

void Strata::finish() {
  settle_samples();
  settle_watches();
  join_common();
  join_watched();
  join_hardly_watched();
  share_out();
  for (const Stratum& stratum : strata_) {
    if (is_time(stratum.unit)) {
      eligible_ns_ += stratum.eligible_weight;
      unwatched_ns_ += stratum.watched_weight > 0 ? 0 : stratum.eligible_weight;
    }
  }
}

Strata::Alike Strata::alike(const Cell& cell) const {
  const Kind& kind = kinds_[cell.kind];
  return {process_of_thread_[kind.thread], kind.flags, kind.unit, kind.stores, is_common(cell.unit) ? cell.unit : rest};
}

/// Joins the cells of places that several threads' watches have chosen together.
void Strata::join_common() {
  std::map<Alike, Pool> pools;
  for (const Cell& cell : cells_) {
    if (is_common(cell.unit)) {
      pools[alike(cell)].looks += cell.looks;
    }
  }
  for (Cell& cell : cells_) {
    if (!is_common(cell.unit)) {
      continue;
    }
    Pool& pool = pools[alike(cell)];
    if (pool.looks >= least_watches) {
      pool.stratum = pool.stratum == none ? new_stratum() : pool.stratum;
      join(cell, pool.stratum);
      strata_[pool.stratum].one_line = is_line(cell.unit);
    }
  }
}

void Strata::join_watched() {
  for (Cell& cell : cells_) {
    if (cell.stratum == none && cell.looks >= least_watches) {
      join(cell, new_stratum());
      Stratum& stratum = strata_[cell.stratum];
      stratum.thread = kinds_[cell.kind].thread;
      stratum.one_line = is_line(cell.unit);
    }
  }
}

void Strata::join_hardly_watched() {
  using Flags = std::tuple<std::uint32_t, std::uint8_t, profile::WeightUnit, bool>;  // process, flags, unit, stores
  const auto alike = [&](const Kind& kind) {
    return Flags{process_of_thread_[kind.thread], kind.flags, kind.unit, kind.stores};
  };
  std::map<Flags, Pool> pools;
  std::vector<std::uint32_t> best(kinds_.size(), none);  // by kind: its most watched stratum of several lines
  for (const Cell& cell : cells_) {
    std::uint32_t& known = best[cell.kind];
    if (cell.stratum == none) {
      pools[alike(kinds_[cell.kind])].looks += cell.looks;
    } else if (!is_line(cell.unit) && !is_common(cell.unit) &&
               (known == none || strata_[known].watched < strata_[cell.stratum].watched)) {
      known = cell.stratum;
    }
  }
  for (Cell& cell : cells_) {
    if (cell.stratum != none) {
      continue;
    }
    const Kind& kind = kinds_[cell.kind];
    Pool& pool = pools[alike(kind)];
    const bool suspected = (kind.flags & profile::sample_suspected) != 0;
    if (suspected && pool.looks < least_watches && best[cell.kind] != none) {
      join(cell, best[cell.kind]);
      continue;
    }
    pool.stratum = pool.stratum == none ? new_stratum() : pool.stratum;
    join(cell, pool.stratum);
  }
}

void Strata::share_out() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> shares;
  for (const Cell& cell : cells_) {
    shares[{kinds_[cell.kind].thread, cell.stratum}] += std::max(cell.sums.eligible_weight, cell.sums.watched_weight);
  }
  for (const auto& [whose, weight] : shares) {
    shares_.push_back({whose.first, whose.second, weight});
  }
}

std::uint32_t Strata::of_watch(std::size_t watch) const {
  const std::uint32_t cell = watch < watched_.size() ? watched_[watch].cell : none;
  return cell == none ? none : cells_[cell].stratum;
}

std::uint32_t Strata::kind_of(const Kind& kind) {
  const auto relevant = static_cast<std::uint8_t>(kind.flags & flag_mask);
  const std::uint64_t key = (std::uint64_t{kind.thread} << 17U) |
                            (static_cast<std::uint64_t>(kind.stores ? 1 : 0) << 16U) |
                            (static_cast<std::uint64_t>(kind.unit) << 8U) | relevant;
  const auto [it, fresh] = kind_ids_.try_emplace(key, static_cast<std::uint32_t>(kinds_.size()));
  if (fresh) {
    rest_cells_.push_back(static_cast<std::uint32_t>(cells_.size()));
    cells_.push_back({it->second, rest, {}, 0, none});
    kinds_.push_back({kind.thread, relevant, kind.unit, kind.stores});
  }
  return it->second;
}

std::uint32_t Strata::cell_of(const Kind& kind, std::uint64_t address) {
  const std::uint32_t id = kind_of(kind);
  const Unit unit = unit_of(kind.thread, address);
  if (unit == rest) {
    return rest_cells_[id];
  }
  const auto [it, fresh] = unit_cells_.try_emplace({id, unit}, static_cast<std::uint32_t>(cells_.size()));
  if (fresh) {
    cells_.push_back({id, unit, {}, 0, none});
  }
  return it->second;
}

void Strata::join(Cell& cell, std::uint32_t stratum) {
  strata_[stratum].unit = kinds_[cell.kind].unit;
  strata_[stratum].suspected = (kinds_[cell.kind].flags & profile::sample_suspected) != 0;
  cell.stratum = stratum;
  add_sums(strata_[stratum], cell.sums);
}

std::uint32_t Strata::new_stratum() {
  strata_.emplace_back();
  strata_.back().expanded = policy_.expanded;
  return static_cast<std::uint32_t>(strata_.size() - 1);
}

}  // namespace crosstalk::attribution
