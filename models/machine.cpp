// SPDX-License-Identifier: Apache-2.0
#include "models/machine.h"

#include <algorithm>
#include <array>

namespace crosstalk::models {
namespace {

/// Null: no row fits.
template <class Row, class Fits>
const Row* find(const std::vector<Row>& rows, Fits fits) {
  const auto row = std::find_if(rows.begin(), rows.end(), fits);
  return row == rows.end() ? nullptr : &*row;
}

const Figure* larger(const Figure* best, const Figure& figure) {
  return figure.value && (best == nullptr || *figure.value > *best->value) ? &figure : best;
}

}  // namespace

unsigned lanes(Width width, Precision precision) {
  constexpr std::array<unsigned, 4> of_double = {1, 2, 4, 8};
  const unsigned doubles = of_double[static_cast<std::size_t>(width)];
  return width != Width::scalar && precision == Precision::single_precision ? 2 * doubles : doubles;
}

unsigned flops(Width width, Precision precision, Operation operation) {
  return lanes(width, precision) * (operation == Operation::fma ? 2 : 1);
}

unsigned integer_lanes(Width width, Element element) {
  return lanes(width, element == Element::int32 ? Precision::single_precision : Precision::double_precision);
}

double moved_per_requested(Level level, Traffic traffic) {
  if (level == Level::l1d) {
    return 1;
  }
  switch (traffic) {
    case Traffic::store:
      return 2;
    case Traffic::copy:
      return 3.0 / 2;
    case Traffic::triad:
      return 4.0 / 3;
    default:
      return 1;
  }
}

const Figure* Machine::flops_of(Width width, Precision precision, Operation operation, Scope scope) const {
  const FlopPeak* const row = find(flops, [&](const FlopPeak& f) {
    return f.width == width && f.precision == precision && f.operation == operation && f.scope == scope;
  });
  return row == nullptr ? nullptr : &row->flops_per_s;
}

const Figure* Machine::bandwidth_of(Level level, Traffic traffic, Scope scope) const {
  const Bandwidth* const row = find(
      bandwidths, [&](const Bandwidth& b) { return b.level == level && b.traffic == traffic && b.scope == scope; });
  return row == nullptr ? nullptr : &row->bytes_per_s;
}

const Figure* Machine::latency_of(Level level) const {
  const LoadLatency* const row = find(latencies, [&](const LoadLatency& l) { return l.level == level; });
  return row == nullptr ? nullptr : &row->seconds;
}

const Figure* Machine::rate_of(Instruction instruction) const {
  const InstructionRate* const row =
      find(instructions, [&](const InstructionRate& r) { return r.instruction == instruction; });
  return row == nullptr ? nullptr : &row->per_s;
}

const Figure* Machine::time_of(Chain chain) const {
  const ChainTime* const row = find(chains, [&](const ChainTime& c) { return c.chain == chain; });
  return row == nullptr ? nullptr : &row->seconds;
}

const Figure* Machine::accesses_of(Level level, Width width, Mix mix, std::uint32_t threads) const {
  const AccessRate* const row = find(accesses, [&](const AccessRate& a) {
    return a.level == level && a.width == width && a.mix == mix && a.threads == threads;
  });
  return row == nullptr ? nullptr : &row->bytes_per_s;
}

const KindLimits* Machine::limits_of(Kind kind) const {
  return find(kinds, [&](const KindLimits& k) { return k.kind == kind; });
}

const Figure* Machine::most_of_groups(Level level, Width width) const {
  const Figure* best = nullptr;
  for (const GroupRate& group : groups) {
    const bool has = group.level == level && group.width == width && group.per_cycle.value;
    best = has && (best == nullptr || *group.per_cycle.value > *best->value) ? &group.per_cycle : best;
  }
  return best;
}

const RidgeRate* Machine::ridge_of(Level level, Width width, Kind kind) const {
  return find(ridges, [&](const RidgeRate& r) { return r.level == level && r.width == width && r.kind == kind; });
}

const ProcessorPair* Machine::pair_of(std::uint32_t a, std::uint32_t b) const {
  const auto [low, high] = std::minmax(a, b);
  return find(pairs, [low = low, high = high](const ProcessorPair& p) { return p.a == low && p.b == high; });
}

const Figure* Machine::peak_bandwidth(Level level, Scope scope) const {
  const Figure* best = nullptr;
  for (const Bandwidth& row : bandwidths) {
    if (row.level == level && row.scope == scope && moved_per_requested(level, row.traffic) == 1) {
      best = larger(best, row.bytes_per_s);
    }
  }
  return best;
}

const Figure* Machine::peak_flops(Precision precision, Scope scope) const {
  const Figure* best = nullptr;
  for (const FlopPeak& row : flops) {
    if (row.precision == precision && row.scope == scope) {
      best = larger(best, row.flops_per_s);
    }
  }
  return best;
}

const Cache* Machine::cache_of(std::uint32_t level) const {
  return find(caches, [&](const Cache& c) { return c.level == level; });
}

}  // namespace crosstalk::models
