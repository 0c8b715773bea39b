// SPDX-License-Identifier: Apache-2.0
#include "driver/roofline/axes.h"

#include <algorithm>
#include <cmath>

namespace crosstalk::driver {

double RooflineAxes::x(double flops_per_byte) const { return (std::log10(flops_per_byte) - x_low) / (x_high - x_low); }
double RooflineAxes::y(double flops_per_s) const { return (std::log10(flops_per_s) - y_low) / (y_high - y_low); }

RooflineAxes axes_of(const RooflineReport& report) {
  const attribution::RooflineLoop& first = report.roofline.loops.front();
  const double compute = first.compute.height.value();
  double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = std::log10(compute);
  const auto include = [&](double x, double y) {
    x_low = std::min(x_low, std::log10(x)), x_high = std::max(x_high, std::log10(x));
    y_low = std::min(y_low, std::log10(y)), y_high = std::max(y_high, std::log10(y));
  };
  for (const attribution::RooflineLoop& loop : report.roofline.loops) {
    include(loop.intensity.value(), loop.performance.value());
    if (const attribution::RooflineLoop* before = former(report, loop)) {
      include(before->intensity.value(), before->performance.value());
    }
  }
  for (const auto& roof : first.bandwidths) {
    include(compute / roof.height.value(), compute);
  }
  constexpr double room = 0.35;  // decades
  return {x_low - room, x_high + room, y_low - room, y_high + room};
}

double roof_at(double bytes_per_s, double compute, double flops_per_byte) {
  return std::min(bytes_per_s * flops_per_byte, compute);
}

}  // namespace crosstalk::driver
