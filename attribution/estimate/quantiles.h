// SPDX-License-Identifier: Apache-2.0
// Quantiles of distributions, by Boost.Math: one file compiles its headers.
#pragma once

namespace crosstalk::attribution {

/// The x below which a gamma variate of this shape and of scale 1 lies with `probability`; 0 where it is too small for
/// a number, or where one of them makes no sense.
[[nodiscard]] double gamma_quantile(double probability, double shape);

/// Student's t for a two-sided interval of 95 % with so many degrees of freedom, > 0.
[[nodiscard]] double student_95(double degrees);

}  // namespace crosstalk::attribution
