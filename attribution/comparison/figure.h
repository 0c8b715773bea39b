// SPDX-License-Identifier: Apache-2.0
// Figures that are known to within an interval, and what two of them, from two profiles, differ by.
#pragma once

#include <optional>

#include "attribution/model.h"

namespace crosstalk::attribution::comparison {

/// A value with its 95 % interval, bounds alone, a value of which it is not known how sure it is, or nothing.
struct Figure {
  std::optional<double> value;
  std::optional<Interval> ci95;
  [[nodiscard]] bool known() const { return value || ci95; }
};

[[nodiscard]] Figure exactly(double value);
/// What is not known is not known of the sum either. Values with intervals are taken as independent.
[[nodiscard]] Figure sum_of(const Figure& a, const Figure& b);
[[nodiscard]] Figure scaled(const Figure& figure, double factor);

/// after - before. The intervals are of independent estimates, so distances to their ends add in quadrature (the method
/// of variance estimates recovery: Zou and Donner, Statistics in Medicine 27, 2008); of bounds the farthest ends are
/// taken. `run_to_run`: two runs of one program differ by more than sampling explains. Each figure is off by that part
/// of itself besides, at 95 %.
[[nodiscard]] Figure change_of(const Figure& before, const Figure& after, double run_to_run);

/// -1 or 1: the interval is below or above zero. 0: it is not, or there is none.
[[nodiscard]] int direction_of(const Figure& change);

}  // namespace crosstalk::attribution::comparison
