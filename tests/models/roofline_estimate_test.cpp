// SPDX-License-Identifier: Apache-2.0
// Intervals that hold the true result whenever their arguments hold the true arguments, and nothing but finite numbers.
#include <gtest/gtest.h>

#include "models/roofline/estimate.h"
#include "tests/models/roofline_example.h"

namespace crosstalk::models::roofline::estimate_test {
namespace {

using namespace example;

TEST(RooflineEstimate, HoldsFiniteOrderedNumbersOnly) {
  with_hostile_numbers(3, [](const std::vector<double>& numbers) {
    expect_sane(Estimate::of(numbers[0], numbers[1], numbers[2], Basis::sampled));
  });
  EXPECT_FALSE(Estimate::of(1, 2, 3, Basis::decoded));
  EXPECT_EQ(Estimate::of(1, 2, 3, Basis::decoded).error().message, "the interval 2 to 3 does not enclose its value 1");
  EXPECT_EQ(Estimate::exact(-1, Basis::decoded).error().message,
            "a quantity or a bound of it is -1; it must be finite and not negative");
}

TEST(RooflineEstimate, IntervalsCombineAsRanges) {
  const Estimate a = within(1, 2, 4), b = within(2, 4, 5, Basis::modelled);
  EXPECT_EQ(sum(a, b).value(), within(3, 6, 9, Basis::modelled));
  EXPECT_EQ(product(a, b).value(), within(2, 8, 20, Basis::modelled));
  EXPECT_EQ(quotient(a, b, "b").value(), within(0.2, 0.5, 2, Basis::modelled));
  EXPECT_EQ(scaled(a, 3).value(), within(3, 6, 12));
  EXPECT_EQ(least(a, b), within(1, 2, 4, Basis::modelled));
  EXPECT_EQ(greatest(a, b), within(2, 4, 5, Basis::modelled));
}

TEST(RooflineEstimate, TheLeastSureBasisIsTheResults) {
  const Basis all[] = {Basis::decoded, Basis::sampled, Basis::calibrated, Basis::modelled, Basis::assumed};
  for (const Basis a : all) {
    for (const Basis b : all) {
      const auto result = product(within(1, 1, 1, a), within(1, 1, 1, b));
      EXPECT_EQ(result.value().basis(), std::max(a, b)) << basis_name(a) << " " << basis_name(b);
    }
  }
  EXPECT_EQ(on_basis(exact(1), Basis::modelled).basis(), Basis::modelled);
  EXPECT_EQ(on_basis(within(1, 1, 1, Basis::assumed), Basis::modelled).basis(), Basis::assumed);
}

TEST(RooflineEstimate, OrderIsKnownOfIntervalsApart) {
  EXPECT_TRUE(surely_below(within(1, 2, 3), within(4, 5, 6)));
  EXPECT_FALSE(surely_below(within(1, 2, 4), within(4, 5, 6)));
  EXPECT_TRUE(overlap(within(1, 2, 4), within(4, 5, 6)));
  EXPECT_FALSE(overlap(within(4, 5, 6), within(1, 2, 3)));
}

TEST(RooflineEstimate, AbsentArgumentsPassTheirReasonOn) {
  const Result<Estimate> known = exact(1), absent = fail(ErrorCode::not_found, "no path was decoded");
  for (const auto& result : {sum(known, absent), product(absent, known), quotient(known, absent, "it")}) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, "no path was decoded");
  }
}

TEST(RooflineEstimate, DivisorsThatMayBeZeroAreRefused) {
  EXPECT_EQ(quotient(exact(1), exact(0), "the time").error().message, "the time is 0; it must be positive");
  EXPECT_EQ(quotient(exact(1), within(0, 1, 2), "the time").error().message, "the time may be 0; it must be positive");
}

TEST(RooflineEstimate, ExtremesStayFinite) {
  with_extreme_estimates(2, [](const std::vector<Estimate>& extremes) {
    expect_sane(sum(extremes[0], extremes[1]));
    expect_sane(product(extremes[0], extremes[1]));
    expect_sane(quotient(extremes[0], extremes[1], "it"));
    expect_sane(least(extremes[0], extremes[1]));
    expect_sane(greatest(extremes[0], extremes[1]));
    for (const double factor : hostile_numbers) {
      expect_sane(scaled(extremes[0], factor));
    }
  });
}

}  // namespace
}  // namespace crosstalk::models::roofline::estimate_test
