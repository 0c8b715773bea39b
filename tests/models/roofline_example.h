// SPDX-License-Identifier: Apache-2.0
// Estimates, roofs and hostile numbers that tests of rooflines share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "models/roofline/estimate.h"
#include "models/roofline/roof.h"
#include "models/roofline/verdict.h"

namespace crosstalk::models::roofline::example {

inline constexpr double giga = 1e9;
inline constexpr double kibi = 1024, mebi = 1024 * 1024;

inline Estimate exact(double value) { return Estimate::exact(value, Basis::decoded).value(); }
inline Estimate within(double low, double value, double high, Basis basis = Basis::sampled) {
  return Estimate::of(value, low, high, basis).value();
}

inline Roof bandwidth(Level level, double bytes_per_s, std::uint32_t threads = 1) {
  return {.name = level_in_words(level),
          .kind = RoofKind::bandwidth,
          .level = level,
          .threads = threads,
          .height = exact(bytes_per_s)};
}
inline Roof compute(double flops_per_s, std::uint32_t threads = 1) {
  return {.name = "peak", .threads = threads, .height = exact(flops_per_s)};
}

/// A number of a source beside the number that the code computes.
struct Vector {
  const char* what;
  double computed;
  double source;
  double tolerance;  ///< half a unit of the last printed digit, or 1e-6
};
inline void expect_vectors(std::initializer_list<Vector> vectors) {
  for (const Vector& vector : vectors) {
    EXPECT_NEAR(vector.computed, vector.source, vector.tolerance * (1 + 1e-9)) << vector.what;
  }
}

/// Numbers that no formula expects, and some at the ends of what a double holds.
inline const std::vector<double> hostile_numbers = {0,
                                                    -0.0,
                                                    -1,
                                                    0.5,
                                                    1,
                                                    64,
                                                    std::numeric_limits<double>::infinity(),
                                                    -std::numeric_limits<double>::infinity(),
                                                    std::numeric_limits<double>::quiet_NaN(),
                                                    std::numeric_limits<double>::denorm_min(),
                                                    std::numeric_limits<double>::max()};

/// Calls a function with every choice of hostile numbers for its arguments.
template <class Function>
void with_hostile_numbers(std::size_t arguments, const Function& function, std::vector<double> chosen = {}) {
  if (chosen.size() == arguments) {
    function(chosen);
    return;
  }
  for (const double number : hostile_numbers) {
    chosen.push_back(number);
    with_hostile_numbers(arguments, function, chosen);
    chosen.pop_back();
  }
}

/// Valid estimates at the ends of what a double holds.
inline std::vector<Estimate> extreme_estimates() {
  constexpr double tiny = std::numeric_limits<double>::denorm_min(), huge = std::numeric_limits<double>::max();
  return {exact(0), exact(tiny), exact(1), exact(huge), within(0, 1, huge), within(0, 0, tiny), within(1, 2, 3)};
}
template <class Function>
void with_extreme_estimates(std::size_t arguments, const Function& function, std::vector<Estimate> chosen = {}) {
  if (chosen.size() == arguments) {
    function(chosen);
    return;
  }
  for (const Estimate& estimate : extreme_estimates()) {
    chosen.push_back(estimate);
    with_extreme_estimates(arguments, function, chosen);
    chosen.pop_back();
  }
}

// A result is finite, or absent with a reason in one line.
inline void expect_reason(const Error& error) {
  EXPECT_FALSE(error.message.empty());
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
}
inline void expect_sane(double value) { EXPECT_TRUE(std::isfinite(value) && value >= 0) << value; }
inline void expect_sane(const Estimate& estimate) {
  expect_sane(estimate.low());
  expect_sane(estimate.high());
  EXPECT_LE(estimate.low(), estimate.value());
  EXPECT_LE(estimate.value(), estimate.high());
}
inline void expect_sane(const Roof& roof) { expect_sane(roof.height); }
inline void expect_sane(const Verdict& verdict) {
  if (verdict.gain_bound) {
    expect_sane(*verdict.gain_bound);
    EXPECT_GE(verdict.gain_bound->low(), 1);
  } else {
    expect_reason(verdict.gain_bound.error());
  }
  for (const Intersection& roof : verdict.reached) {
    expect_sane(roof.height);
  }
}
template <class T>
void expect_sane(const std::vector<T>& values) {
  for (const T& value : values) {
    expect_sane(value);
  }
}
template <class T>
void expect_sane(const Result<T>& result) {
  if (result) {
    expect_sane(*result);
  } else {
    expect_reason(result.error());
  }
}
}  // namespace crosstalk::models::roofline::example
