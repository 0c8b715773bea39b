// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/figure.h"

#include <algorithm>
#include <cmath>

namespace crosstalk::attribution::comparison {
namespace {

/// The distances from a value to the lower and upper ends of its interval.
struct Reach {
  double down = 0, up = 0;
};

Reach reach_of(double value, const Interval& ci95, double run_to_run) {
  const double besides = run_to_run * std::fabs(value);
  return {std::hypot(std::max(0.0, value - ci95.low), besides), std::hypot(std::max(0.0, ci95.high - value), besides)};
}

}  // namespace

Figure exactly(double value) { return {value, Interval{value, value}}; }

Figure sum_of(const Figure& a, const Figure& b) {
  Figure sum;
  if (a.value && b.value) {
    sum.value = *a.value + *b.value;
  }
  if (!a.ci95 || !b.ci95) {
    return sum;
  }
  if (!sum.value) {
    sum.ci95 = Interval{a.ci95->low + b.ci95->low, a.ci95->high + b.ci95->high};
    return sum;
  }
  const Reach ra = reach_of(*a.value, *a.ci95, 0);
  const Reach rb = reach_of(*b.value, *b.ci95, 0);
  sum.ci95 = Interval{*sum.value - std::hypot(ra.down, rb.down), *sum.value + std::hypot(ra.up, rb.up)};
  return sum;
}

Figure scaled(const Figure& figure, double factor) {
  Figure result = figure;
  if (result.value) {
    *result.value *= factor;
  }
  if (result.ci95) {
    result.ci95 = Interval{result.ci95->low * factor, result.ci95->high * factor};
  }
  return result;
}

Figure change_of(const Figure& before, const Figure& after, double run_to_run) {
  Figure change;
  if (before.value && after.value) {
    change.value = *after.value - *before.value;
  }
  if (!before.ci95 || !after.ci95) {
    return change;
  }
  if (!change.value) {
    change.ci95 = Interval{after.ci95->low * (1 - run_to_run) - before.ci95->high * (1 + run_to_run),
                           after.ci95->high * (1 + run_to_run) - before.ci95->low * (1 - run_to_run)};
    return change;
  }
  const Reach was = reach_of(*before.value, *before.ci95, run_to_run);
  const Reach is = reach_of(*after.value, *after.ci95, run_to_run);
  change.ci95 = Interval{*change.value - std::hypot(is.down, was.up), *change.value + std::hypot(is.up, was.down)};
  return change;
}

int direction_of(const Figure& change) {
  if (!change.ci95) {
    return 0;
  }
  return change.ci95->high < 0 ? -1 : change.ci95->low > 0 ? 1 : 0;
}

}  // namespace crosstalk::attribution::comparison
