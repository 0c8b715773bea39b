// SPDX-License-Identifier: Apache-2.0
// The geometry of a roofline picture, the same for text and SVG: its axes, the curves of roofs, and the points. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/roofline/report.h"

namespace crosstalk::driver {

/// The bounds of the plane that is shown: x as a decimal logarithm, y likewise, or linear for instructions a cycle.
struct PictureAxes {
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  bool y_linear = false;
  /// The place of a value between the ends, 0 to 1 inside.
  [[nodiscard]] double x(double value) const;
  [[nodiscard]] double y(double value) const;
  /// The values at the ends.
  [[nodiscard]] double least_x() const;
  [[nodiscard]] double greatest_x() const;
  [[nodiscard]] double least_y() const;
  [[nodiscard]] double greatest_y() const;
};

/// A roof as a curve: slanted of a bandwidth, horizontal of units or of retirement, or a hill of the mansard model.
struct PictureCurve {
  enum class Shape { slanted, horizontal, hill };
  enum class Weight { roof, ceiling, other };  // other: of the machine, but not for this loop
  Shape shape = Shape::horizontal;
  Weight weight = Weight::roof;
  std::string name, value;                           // "L2", "98.2 GB/s"; the value is empty where the name says it
  std::string spread = {};                           // " ±10 %", or empty
  double height = 0;                                 // of a slanted one y / x
  double begin = 0, end = 0;                         // x
  std::vector<std::pair<double, double>> hill = {};  // x, y
  /// y at x; nullopt outside of the curve.
  [[nodiscard]] std::optional<double> at(double x) const;
};

struct Picture {
  PictureAxes axes;
  std::vector<PictureCurve> curves;                                // the weightiest first
  std::optional<std::pair<double, double>> shaded = std::nullopt;  // x from, to: the mixed region of the mansard model
};

/// Shows all points of the first `most` loops and their matches in the earlier profile, and the roofs of the first
/// loop. Precondition: there is a loop.
[[nodiscard]] Picture picture_of(const RooflineReport& report, std::size_t most);

/// Values to label an axis with, between two ends: 1, 2 and 5 times powers of ten; powers alone where there are many.
[[nodiscard]] std::vector<double> decade_steps(double least, double greatest);
/// The same for a linear axis from 0 on.
[[nodiscard]] std::vector<double> even_steps(double greatest);

}  // namespace crosstalk::driver
