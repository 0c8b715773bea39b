// SPDX-License-Identifier: Apache-2.0
// The error of an amount by the rates of stores that its probes are weighted with (timeline/store_rate.h). All costs
// that one rate weights are wrong together, so they are summed up before they are squared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "attribution/model/model.h"
#include "attribution/timeline/store_rate.h"

namespace crosstalk::attribution {

class ProbeErrors {
 public:
  /// `rates`: absent if lines were watched.
  void add(const ProbeRates* rates, std::uint32_t watch, double cost) {
    if (rates != nullptr && watch < rates->of_watch.size() && rates->of_watch[watch] != ProbeRates::none) {
      cost_[rates->of_watch[watch]] += cost;
    }
  }
  /// The interval of `amount`, at most `most`, with these errors, which are independent of those that it has.
  [[nodiscard]] Interval widened(const Interval& interval, double amount, double most, const ProbeRates* rates) const {
    if (cost_.empty()) {
      return interval;
    }
    double below = 0;
    double above = 0;
    for (const auto& [id, cost] : cost_) {
      const StoreRate& rate = rates->rates[id];
      below = std::hypot(below, cost * (1 - rate.active_low / rate.active));
      above = std::hypot(above, cost * (rate.active_high / rate.active - 1));
    }
    return {std::max(0.0, amount - std::hypot(amount - interval.low, below)),
            std::max(amount, std::min(most, amount + std::hypot(interval.high - amount, above)))};
  }

 private:
  std::map<std::uint32_t, double> cost_;  // by rate
};

}  // namespace crosstalk::attribution
