// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/store_rate.h"

#include <algorithm>
#include <cmath>

namespace crosstalk::attribution {
namespace {

constexpr std::size_t rates = 51;
constexpr double slowest = 1e-6, fastest = 0.1;  // stores a nanosecond
constexpr double first_gap_ns = 128;
constexpr double bins_of_octave = 4;

constexpr double likely_95 = 1.92;  // less than the greatest log-likelihood: the ends of a 95 % interval

double rate_at(std::size_t index) {
  return slowest * std::pow(fastest / slowest, static_cast<double>(index) / (rates - 1));
}

/// The likelihood of the outcomes at one rate.
struct OfRate {
  double log_likelihood = 0;
  double active = 0;     // the most likely one
  double detection = 0;  // of all probes
};

OfRate of_rate(const ProbeOutcomes& outcomes, double rate) {
  std::array<double, ProbeOutcomes::bins> stored{};  // the chance that an active partner stored
  OfRate result;
  double detected = 0;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const ProbeOutcomes::Bin& bin = outcomes.by_gap()[i];
    if (bin.probes > 0) {
      stored[i] = -std::expm1(-rate * bin.gaps_ns / bin.probes);
      detected += bin.probes * stored[i];
    }
  }
  result.detection = detected / outcomes.probes();
  double a = std::min(outcomes.hits() / detected, 1.0);
  for (int step = 0; step < 5; ++step) {  // Newton; the likelihood is concave
    double slope = outcomes.hits() / a;
    double bend = slope / a;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const ProbeOutcomes::Bin& bin = outcomes.by_gap()[i];
      const double part = stored[i] / std::max(1 - a * stored[i], 1e-9);
      slope -= (bin.probes - bin.hits) * part;
      bend += (bin.probes - bin.hits) * part * part;
    }
    a = std::clamp(a + slope / bend, a / 4, 1.0);
  }
  result.active = a;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const ProbeOutcomes::Bin& bin = outcomes.by_gap()[i];
    if (bin.probes > 0) {
      const double chance = std::clamp(a * stored[i], 1e-12, 1 - 1e-9);
      result.log_likelihood += bin.hits * std::log(chance) + (bin.probes - bin.hits) * std::log1p(-chance);
    }
  }
  return result;
}

}  // namespace

void ProbeOutcomes::add(const ProbeOutcome& outcome) {
  const double step = bins_of_octave * std::log2(std::max(outcome.gap_ns, 1.0) / first_gap_ns);
  const auto index = static_cast<std::size_t>(std::clamp(step, 0.0, double{bins - 1}));
  for (Bin* bin : {&by_gap_[index], &all_}) {
    bin->probes += 1;
    bin->hits += outcome.changed ? 1 : 0;
    bin->gaps_ns += outcome.gap_ns;
  }
}

StoreRate store_rate(const ProbeOutcomes& outcomes) {
  StoreRate result;
  if (outcomes.hits() <= 0) {
    return result;
  }
  std::array<OfRate, rates> found;
  std::size_t best = 0;
  for (std::size_t i = 0; i < rates; ++i) {
    found[i] = of_rate(outcomes, rate_at(i));
    best = found[i].log_likelihood > found[best].log_likelihood ? i : best;
  }
  const double seen = outcomes.hits() / outcomes.probes();
  result.active = found[best].active;
  result.rate = rate_at(best);
  result.detection = std::min(seen / result.active, 1.0);
  result.active_low = result.active_high = result.active;
  for (std::size_t i = 0; i < rates; ++i) {
    if (found[i].log_likelihood >= found[best].log_likelihood - likely_95) {
      result.active_low = std::min(result.active_low, found[i].active);
      result.active_high = std::max(result.active_high, found[i].active);
      result.rate_low = result.rate_high > 0 ? result.rate_low : rate_at(i);
      result.rate_high = rate_at(i);
    }
  }
  return result;
}

}  // namespace crosstalk::attribution
