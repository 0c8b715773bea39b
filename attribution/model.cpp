// SPDX-License-Identifier: Apache-2.0
#include "attribution/model.h"

#include <algorithm>

namespace crosstalk::attribution {
namespace {

std::optional<Interval> both(const std::optional<Interval>& a, const std::optional<Interval>& b) {
  return a && b ? std::optional(Interval{a->low + b->low, a->high + b->high}) : std::nullopt;
}

Interval limited(const Interval& interval, double most) {
  return {std::min(interval.low, most), std::min(interval.high, most)};
}

}  // namespace

Sum sum_of(const Amount& a, const Amount& b) {
  Sum sum;
  sum.cost_s = a.cost_s.value_or(0) + b.cost_s.value_or(0);
  sum.cost_ci95 = both(a.cost_ci95, b.cost_ci95);
  sum.gain_s = a.gain_s && b.gain_s ? std::optional(*a.gain_s + *b.gain_s) : std::nullopt;
  sum.gain_ci95 = both(a.gain_ci95, b.gain_ci95);
  if (sum.gain_ci95 && a.payers_s && b.payers_s) {
    sum.gain_ci95 = limited(*sum.gain_ci95, std::max({*a.payers_s, *b.payers_s, sum.gain_s.value_or(0)}));
  }
  const auto moves = [](const Amount& amount) { return amount.detections > 0 && !amount.one_processor; };
  sum.one_processor = (a.one_processor || b.one_processor) && !moves(a) && !moves(b);
  return sum;
}

}  // namespace crosstalk::attribution
