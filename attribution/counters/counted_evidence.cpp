// SPDX-License-Identifier: Apache-2.0
#include "attribution/counters/counted_evidence.h"

#include <algorithm>

namespace crosstalk::attribution {
namespace {

using models::Unit;
using profile::CounterQuantity;

constexpr double line_bytes = 64;

}  // namespace

models::ByUnit<std::optional<double>> counted_bytes(const CounterRates& rates) {
  constexpr double hardly = 0.01;  // of the accesses
  const auto loads = rates.per_s(CounterQuantity::loads);
  const auto stores = rates.per_s(CounterQuantity::stores);
  const bool only_loads = loads && stores && *stores < hardly * (*loads + *stores);
  const auto both_ways = [&](CounterQuantity in, std::optional<CounterQuantity> out) {
    const auto fills = rates.per_s(in);
    const auto writebacks = out ? rates.per_s(*out) : std::nullopt;
    if (!fills || (!writebacks && !only_loads)) {
      return std::optional<double>();
    }
    return std::optional(line_bytes * (*fills + writebacks.value_or(0)));
  };
  models::ByUnit<std::optional<double>> bytes;
  bytes[Unit::l2] = both_ways(CounterQuantity::l1d_fills, CounterQuantity::l1d_writebacks);
  bytes[Unit::l3] = both_ways(CounterQuantity::l2_fills, CounterQuantity::l2_writebacks);
  bytes[Unit::memory] = both_ways(CounterQuantity::l3_misses, std::nullopt);
  return bytes;
}

bool takes_counted(Unit unit, double counted, std::optional<double> by_code) {
  return unit != Unit::memory || counted >= by_code.value_or(0);
}

bool tell_of_cycles(const CounterRates& rates, double seconds, const std::optional<models::Standing>& sampled,
                    models::CycleEvidence& evidence) {
  const std::optional<TopDown> cycles = rates.top_down();
  if (!cycles) {
    return false;
  }
  const double waiting = 1 - cycles->retiring;
  evidence.commit_bound_s = cycles->retiring * seconds;
  if (waiting <= 0) {
    evidence.standing = models::Standing{0, 0, 0, 0};
    return true;
  }
  models::Standing& at = evidence.standing.emplace();
  at.frontend = cycles->frontend / waiting;
  at.branch = cycles->bad_speculation / waiting;
  const double backend = cycles->backend / waiting;
  const double by_samples = sampled ? sampled->fpu.value_or(0) + sampled->data.value_or(0) : 0;
  if (const auto stalls = rates.per_cycle(CounterQuantity::stalls_load)) {
    at.data = std::min(backend, *stalls / waiting);
  } else if (by_samples > 0) {
    at.data = backend * sampled->data.value_or(0) / by_samples;
  }
  if (at.data) {
    at.fpu = backend - *at.data;
  }
  if (auto levels = rates.stalled()) {
    double sum = 0;
    for (const double level : *levels) {
      sum += level;
    }
    for (double& level : *levels) {
      level = sum > 0 ? level / sum : 0;
    }
    evidence.data_levels = sum > 0 ? levels : evidence.data_levels;
  }
  return true;
}

}  // namespace crosstalk::attribution
