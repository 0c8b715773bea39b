// SPDX-License-Identifier: Apache-2.0
#include "attribution/model/model.h"

#include <algorithm>

namespace crosstalk::attribution {
namespace {

std::optional<Interval> both(const std::optional<Interval>& a, const std::optional<Interval>& b) {
  return a && b ? std::optional(Interval{a->low + b->low, a->high + b->high}) : std::nullopt;
}

Interval limited(const Interval& interval, double most) {
  return {std::min(interval.low, most), std::min(interval.high, most)};
}

/// True for a sort of sharing that is unknown because some accesses go unseen.
bool is_out_of_sight(const Amount& amount) { return !amount.cost_s && amount.detections <= 0; }

Amount nothing_beside(const Amount& seen) {
  Amount nothing;
  nothing.cost_s = nothing.gain_s = 0;
  nothing.cost_ci95 = nothing.gain_ci95 = Interval{0, 0};
  nothing.payers_s = seen.payers_s;
  return nothing;
}

}  // namespace

Sum sum_of(const Amount& a, const Amount& b) {
  if (is_out_of_sight(a) && b.cost_s) {
    return sum_of(nothing_beside(b), b);
  }
  if (is_out_of_sight(b) && a.cost_s) {
    return sum_of(a, nothing_beside(a));
  }
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

std::optional<SaidGain> said_gain(const Sum& sum) {
  if (!(sum.cost_s > 0)) {
    return std::nullopt;  // nothing is known of detections without a cost
  }
  const bool none = sum.one_processor || (sum.gain_ci95 && !(sum.gain_ci95->high > 0));
  if (none || sum.gain_s.value_or(0) > 0) {
    return SaidGain{none ? 0 : std::min(*sum.gain_s, sum.cost_s), false};
  }
  if (sum.gain_ci95) {  // a likely gain of 0 excludes no other
    return SaidGain{std::min(sum.gain_ci95->high, sum.cost_s), true};
  }
  return sum.gain_s ? std::optional(SaidGain{}) : std::nullopt;
}

bool cpu_time_known(const Analysis& analysis) {
  return analysis.shares_of.empty() &&
         std::any_of(analysis.threads.begin(), analysis.threads.end(),
                     [](const ThreadSummary& thread) { return thread.cpu_s.has_value(); });
}

}  // namespace crosstalk::attribution
