// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/intervals.h"

#include <cmath>

#include "models/quantiles.h"

namespace crosstalk::attribution {
namespace {

constexpr double lower_tail = 0.025, upper_tail = 0.975, z95 = 1.959963984540054;

/// A gamma quantile by the cube of a normal variate (Wilson and Hilferty) with the quantile `z`; 0 if it is not
/// applicable.
double cube_quantile(double z, double shape) {
  const double root = 1 - 1 / (9 * shape) + z / (3 * std::sqrt(shape));
  return root > 0 ? shape * root * root * root : 0;
}

/// A quantile of a gamma variate with this mean and variance.
double quantile(double mean, double variance, double probability, double z) {
  constexpr double many = 100;  // from there on the cube is as good
  if (mean <= 0 || variance <= 0) {
    return mean;
  }
  const double shape = mean * mean / variance;
  return variance / mean * (shape > many ? cube_quantile(z, shape) : models::gamma_quantile(probability, shape));
}

}  // namespace

Interval event_interval(double sum, double variance, double event) {
  return {quantile(sum, variance, lower_tail, -z95), quantile(sum + event, variance + event * event, upper_tail, z95)};
}

}  // namespace crosstalk::attribution
