// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/intervals.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace crosstalk::attribution {
namespace {

constexpr double lower_tail = 0.025, upper_tail = 0.975, z95 = 1.959963984540054;

/// The density of the logarithm at ln x: x times that at x.
double density_of_log(double shape, double x) { return std::exp(shape * std::log(x) - x - std::lgamma(shape)); }

/// The probability that a gamma variate lies below x > 0: its series where that converges fast, else one less the
/// continued fraction of the rest (Abramowitz and Stegun 6.5.29 and 6.5.31, the latter by Lentz's method).
double gamma_probability(double shape, double x) {
  constexpr int most_terms = 1000;
  constexpr double negligible = 1e-12;
  if (x < shape + 1) {
    double term = 1 / shape;
    double sum = term;
    for (int n = 1; n < most_terms && term > negligible * sum; ++n) {
      term *= x / (shape + n);
      sum += term;
    }
    return sum * density_of_log(shape, x);
  }
  double b = x + 1 - shape;
  double c = 1 / std::numeric_limits<double>::min();
  double d = 1 / b;
  double fraction = d;
  for (int n = 1; n < most_terms; ++n) {
    const double a = -n * (n - shape);
    b += 2;
    d = 1 / (a * d + b);
    c = b + a / c;
    fraction *= c * d;
    if (std::abs(c * d - 1) < negligible) {
      break;
    }
  }
  return 1 - fraction * density_of_log(shape, x);
}

/// By the cube of a normal variate (Wilson and Hilferty), whose quantile is `z`; 0 where that says nothing.
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
  return variance / mean * (shape > many ? cube_quantile(z, shape) : gamma_quantile(probability, shape));
}

}  // namespace

double gamma_quantile(double probability, double shape) {
  constexpr int most_steps = 100;
  constexpr double close = 1e-7;
  constexpr double farthest = 40;  // that many beyond ten deviations, what is above is less than 1e-15
  if (!(probability > 0 && probability < 1 && shape > 0)) {
    return 0;
  }
  // Newton's method in ln x, kept between bounds; the lower one since P(x) < x^shape / Gamma(shape + 1).
  double low = (std::log(probability) + std::lgamma(shape + 1)) / shape;
  double high = std::log(shape + 10 * std::sqrt(shape) + farthest);
  double at = shape > 1 ? std::clamp(std::log(shape), low, high) : low;
  for (int step = 0; step < most_steps; ++step) {
    const double x = std::exp(at);
    if (x < std::numeric_limits<double>::min()) {
      return 0;
    }
    const double excess = gamma_probability(shape, x) - probability;
    (excess < 0 ? low : high) = at;
    const double newton = at - excess / density_of_log(shape, x);
    const double next = newton > low && newton < high ? newton : (low + high) / 2;
    if (std::abs(next - at) < close) {
      return std::exp(next);
    }
    at = next;
  }
  return std::exp(at);
}

Interval event_interval(double sum, double variance, double event) {
  return {quantile(sum, variance, lower_tail, -z95), quantile(sum + event, variance + event * event, upper_tail, z95)};
}

}  // namespace crosstalk::attribution
