// SPDX-License-Identifier: Apache-2.0
// Figures with intervals, and the change between two of them from two profiles.
#pragma once

#include <optional>

#include "attribution/model/model.h"

namespace crosstalk::attribution::comparison {

/// A value with its 95 % interval, bounds alone, a value of unknown certainty, or nothing.
struct Figure {
  std::optional<double> value;
  std::optional<Interval> ci95;
  [[nodiscard]] bool known() const { return value || ci95; }
};

[[nodiscard]] Figure exactly(double value);
/// The sum has only the parts that both figures have. Treats values with intervals as independent.
[[nodiscard]] Figure sum_of(const Figure& a, const Figure& b);
[[nodiscard]] Figure scaled(const Figure& figure, double factor);

/// after - before. The intervals belong to independent estimates, so distances to their ends add in quadrature (the
/// method of variance estimates recovery: Zou and Donner, Statistics in Medicine 27, 2008); for bounds it takes the
/// farthest ends. `run_to_run`: two runs of one program differ by more than sampling explains, so each figure may also
/// be off by this part of itself, at 95 %.
[[nodiscard]] Figure change_of(const Figure& before, const Figure& after, double run_to_run);

/// -1 or 1: the interval is below or above zero. 0: it contains zero, or there is none.
[[nodiscard]] int direction_of(const Figure& change);

}  // namespace crosstalk::attribution::comparison
