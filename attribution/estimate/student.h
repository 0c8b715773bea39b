// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace crosstalk::attribution {

/// Student's t for 95 %: Cornish-Fisher expansion in 1/df (Abramowitz and Stegun, 26.7.5), 0.1 % off at 3 degrees.
inline double student(double degrees) {
  constexpr double z95 = 1.959963984540054;
  const double z = z95;
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  const double z9 = z7 * z * z;
  const double squared = degrees * degrees;
  return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * squared) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * squared * degrees) +
         (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * squared * squared);
}

}  // namespace crosstalk::attribution
