// SPDX-License-Identifier: Apache-2.0
#include "attribution/counters/counter_rates.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace crosstalk::attribution {

using Quantity = profile::CounterQuantity;

const CountedRate* CounterRates::of(Quantity quantity) const {
  const auto found = std::find_if(rates.begin(), rates.end(),
                                  [quantity](const CountedRate& rate) { return rate.quantity == quantity; });
  return found == rates.end() ? nullptr : &*found;
}

std::optional<double> CounterRates::per_s(Quantity quantity) const {
  const CountedRate* const rate = of(quantity);
  return rate != nullptr ? std::optional(rate->per_s) : std::nullopt;
}

std::optional<double> CounterRates::per_cycle(Quantity quantity) const {
  const CountedRate* const rate = of(quantity);
  return rate != nullptr ? std::optional(rate->per_cycle) : std::nullopt;
}

namespace {

constexpr std::array<Quantity, 5> always_counted = {Quantity::flops_scalar, Quantity::flops_sse_double,
                                                    Quantity::flops_sse_single, Quantity::flops_avx2_double,
                                                    Quantity::flops_avx2_single};
constexpr std::array<Quantity, 2> counted_of_some = {Quantity::flops_avx512_double, Quantity::flops_avx512_single};

}  // namespace

/// Treats the half-widths of the widths' intervals as independent.
Rate CounterRates::flops() const {
  Rate sum;
  sum.counted = true;
  if (const CountedRate* const all = of(Quantity::flops)) {
    sum.per_s = all->per_s;
    sum.ci95 = all->ci95;
    return sum;
  }
  double total = 0;
  double half2 = 0;
  const auto add = [&](const CountedRate& rate) {
    const double half = (rate.ci95.high - rate.ci95.low) / 2;
    total += rate.per_s;
    half2 += half * half;
  };
  for (const Quantity quantity : always_counted) {
    const CountedRate* const rate = of(quantity);
    if (rate == nullptr) {
      sum.unknown = "its counters did not count them all";
      return sum;
    }
    add(*rate);
  }
  for (const Quantity quantity : counted_of_some) {
    if (const CountedRate* const rate = of(quantity)) {
      add(*rate);
    }
  }
  sum.per_s = total;
  sum.ci95 = Interval{std::max(0.0, total - std::sqrt(half2)), total + std::sqrt(half2)};
  return sum;
}

std::optional<double> CounterRates::packed() const {
  const Rate all = flops();
  const CountedRate* const scalar = of(Quantity::flops_scalar);
  return all.per_s && *all.per_s > 0 && scalar != nullptr ? std::optional(1 - scalar->per_s / *all.per_s)
                                                          : std::nullopt;
}

/// Computes an uncounted part from the others, since their sum is 1.
std::optional<TopDown> CounterRates::top_down() const {
  const auto retiring = per_cycle(Quantity::retiring);
  const auto frontend = per_cycle(Quantity::frontend_bound);
  const auto issued = per_cycle(Quantity::issued);
  auto backend = per_cycle(Quantity::backend_bound);
  auto bad = per_cycle(Quantity::bad_speculation);
  if (!retiring || !frontend) {
    return std::nullopt;
  }
  if (!bad && issued) {
    bad = std::max(0.0, *issued - *retiring + per_cycle(Quantity::recovery).value_or(0));
  }
  if (!bad && !backend) {
    return std::nullopt;
  }
  const double rest = 1 - *retiring - *frontend;
  bad = bad ? *bad : std::max(0.0, rest - *backend);
  backend = backend ? *backend : std::max(0.0, rest - *bad);
  const double sum = *retiring + *frontend + *bad + *backend;
  const double over = std::max(1.0, sum);  // groups that took turns saw different times
  return TopDown{*retiring / over, *frontend / over, *bad / over, *backend / over};
}

std::optional<models::LevelShares> CounterRates::stalled() const {
  constexpr std::array<Quantity, 4> beyond = {Quantity::stalls_load, Quantity::stalls_l1d_miss,
                                              Quantity::stalls_l2_miss, Quantity::stalls_l3_miss};
  models::LevelShares shares{};
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    const auto here = per_cycle(beyond.at(i));
    if (!here) {
      return std::nullopt;
    }
    shares.at(i) = *here;
    if (i > 0) {
      shares.at(i - 1) = std::max(0.0, shares.at(i - 1) - *here);
    }
  }
  return shares;
}

}  // namespace crosstalk::attribution
