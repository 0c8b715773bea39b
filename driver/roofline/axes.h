// SPDX-License-Identifier: Apache-2.0
// The part of a log-log plane that a roofline shows. Pure.
#pragma once

#include "driver/roofline/report.h"

namespace crosstalk::driver {

/// Decimal logarithms: x of flop/B, y of flop/s.
struct RooflineAxes {
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  /// The place of a value between the ends, 0 to 1 inside.
  [[nodiscard]] double x(double flops_per_byte) const;
  [[nodiscard]] double y(double flops_per_s) const;
};

/// Axes with all points, those of an earlier profile among them, the ridges of the first loop's roofs and its compute
/// roof, and some room around them. Precondition: there is a loop.
[[nodiscard]] RooflineAxes axes_of(const RooflineReport& report);

/// flop/s of a bandwidth roof at an intensity, at most that of the compute roof.
[[nodiscard]] double roof_at(double bytes_per_s, double compute, double flops_per_byte);

}  // namespace crosstalk::driver
