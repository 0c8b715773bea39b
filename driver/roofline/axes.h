// SPDX-License-Identifier: Apache-2.0
// The part of a log-log plane that a roofline shows. Pure.
#pragma once

#include "driver/roofline/report.h"

namespace crosstalk::driver {

/// The bounds as decimal logarithms: x in flop/B, y in flop/s.
struct RooflineAxes {
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  /// The place of a value between the ends, 0 to 1 inside.
  [[nodiscard]] double x(double flops_per_byte) const;
  [[nodiscard]] double y(double flops_per_s) const;
};

/// Axes that hold all loops, their matches in the earlier profile, the ridges of the first loop and its compute roof,
/// with a margin. Precondition: there is a loop.
[[nodiscard]] RooflineAxes axes_of(const RooflineReport& report);

/// The bandwidth roof at this intensity, at most the compute roof, flop/s.
[[nodiscard]] double roof_at(double bytes_per_s, double compute, double flops_per_byte);

}  // namespace crosstalk::driver
