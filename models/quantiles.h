// SPDX-License-Identifier: Apache-2.0
// Quantiles of distributions by Boost.Math, whose headers only one file compiles.
#pragma once

namespace crosstalk::models {

/// The x below which a gamma variate of this shape and of scale 1 lies with `probability`; 0 if it is too small for a
/// number, or if an argument is invalid.
[[nodiscard]] double gamma_quantile(double probability, double shape);

/// Student's t for a two-sided interval of 95 % with `degrees` degrees of freedom, > 0.
[[nodiscard]] double student_95(double degrees);

}  // namespace crosstalk::models
