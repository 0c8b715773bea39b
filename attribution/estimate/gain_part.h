// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace crosstalk::attribution {

/// The part of a cost that would be saved if the line no longer moved, 0..1: bounds, and a likely value if the loop's
/// iterations are known.
struct GainPart {
  double low = 0, high = 1;
  std::optional<double> likely;
};

/// Gains of costs, summed.
class GainSums {
 public:
  void add(double cost_s, const GainPart& part) {
    cost_ += cost_s;
    low_ += cost_s * part.low;
    high_ += cost_s * part.high;
    likely_ += cost_s * part.likely.value_or((part.low + part.high) / 2);
    unknown_ += part.likely ? 0 : cost_s;
  }
  /// As parts of all cost; no likely value if it is missing for more than a tenth of the cost.
  [[nodiscard]] GainPart part() const {
    constexpr double most_unknown = 0.1;
    if (!(cost_ > 0)) {
      return {};
    }
    const bool known = unknown_ <= most_unknown * cost_;
    return {low_ / cost_, high_ / cost_, known ? std::optional(likely_ / cost_) : std::nullopt};
  }

 private:
  double cost_ = 0, low_ = 0, high_ = 0, likely_ = 0, unknown_ = 0;
};

}  // namespace crosstalk::attribution
