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
  /// The interval of `amount`, at most `most`, with these errors, which are independent of those that it has. Where the
  /// probes leave open whether a partner was active all the time, the range of rates is no error about the most likely
  /// one: its end is often the truth, so it multiplies the interval's.
  [[nodiscard]] Interval widened(const Interval& interval, double amount, double most, const ProbeRates* rates) const {
    if (cost_.empty()) {
      return interval;
    }
    double below = 0;
    double above = 0;
    double open = 0;
    for (const auto& [id, cost] : cost_) {
      const StoreRate& rate = rates->rates[id];
      below = std::hypot(below, cost * (1 - rate.active_low / rate.active));
      const double more = cost * (rate.active_high / rate.active - 1);
      const bool is_open = rate.active_high >= always;
      open += is_open ? more : 0;
      above = std::hypot(above, is_open ? 0 : more);
    }
    const double high = (amount + std::hypot(interval.high - amount, above)) * (amount > 0 ? 1 + open / amount : 1);
    return {std::max(0.0, amount - std::hypot(amount - interval.low, below)), std::max(amount, std::min(most, high))};
  }

 private:
  static constexpr double always = 0.999;
  std::map<std::uint32_t, double> cost_;  // by rate
};

}  // namespace crosstalk::attribution
