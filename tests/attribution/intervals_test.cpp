// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/intervals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/quantiles.h"

namespace crosstalk::attribution::intervals_test {
namespace {

TEST(GammaQuantile, IsThatOfKnownDistributions) {
  EXPECT_NEAR(models::gamma_quantile(0.975, 1), -std::log(0.025), 1e-6);  // exponential
  EXPECT_NEAR(models::gamma_quantile(0.025, 1), -std::log(0.975), 1e-8);
  EXPECT_NEAR(models::gamma_quantile(0.975, 0.5), 5.023886 / 2, 1e-6);       // chi-square, one degree of freedom
  EXPECT_NEAR(models::gamma_quantile(0.95, 5), 18.307038 / 2, 1e-6);         // ten
  EXPECT_NEAR(models::gamma_quantile(0.05, 50), 77.929465 / 2, 1e-5);        // a hundred
  EXPECT_NEAR(models::gamma_quantile(0.5, 1e4) / (1e4 - 1.0 / 3), 1, 1e-6);  // nearly normal
}

TEST(Student, IsThatOfTheTables) {
  EXPECT_NEAR(models::student_95(1), 12.7062, 1e-4);
  EXPECT_NEAR(models::student_95(3), 3.18245, 1e-5);
  EXPECT_NEAR(models::student_95(10), 2.22814, 1e-5);
  EXPECT_NEAR(models::student_95(1e6), 1.95997, 1e-5);
}

TEST(GammaQuantile, IsZeroWhereItIsTooSmallOrMakesNoSense) {
  EXPECT_EQ(models::gamma_quantile(0.025, 1e-4), 0);
  for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(models::gamma_quantile(0.5, wrong), 0);
    EXPECT_EQ(models::gamma_quantile(wrong, 1), 0);
  }
  EXPECT_EQ(models::gamma_quantile(1, 1), 0);
}

/// Exact limits of a Poisson mean (Garwood, Fiducial limits for the Poisson distribution, Biometrika 28, 1936).
TEST(EventInterval, IsExactForEventsOfOneWeight) {
  struct Known {
    double events, low, high;
  };
  for (const Known& known : {Known{0, 0, 3.689}, Known{1, 0.0253, 5.572}, Known{2, 0.242, 7.225},
                             Known{5, 1.623, 11.668}, Known{10, 4.795, 18.390}, Known{30, 20.24, 42.83}}) {
    constexpr double weight = 7;
    const Interval one = event_interval(known.events, known.events, 1);
    EXPECT_NEAR(one.low, known.low, 0.005 * known.low);
    EXPECT_NEAR(one.high, known.high, 0.0005 * known.high);
    const Interval heavy = event_interval(weight * known.events, weight * weight * known.events, weight);
    EXPECT_NEAR(heavy.low, weight * one.low, 1e-9);
    EXPECT_NEAR(heavy.high, weight * one.high, 1e-9);
  }
  EXPECT_NEAR(event_interval(0, 0, 1).high, most_unseen_events, 1e-6);
}

TEST(EventInterval, IsNormalForMany) {
  const Interval many = event_interval(1e6, 1e6, 1);
  EXPECT_NEAR(many.low, 1e6 - 1960, 5);
  EXPECT_NEAR(many.high, 1e6 + 1960, 5);
}

TEST(EventInterval, HasNoStepWhereTheMethodChanges) {
  const Interval below = event_interval(99.99, 99.99, 0);
  const Interval above = event_interval(100.01, 100.01, 0);
  EXPECT_NEAR(above.low - below.low, 0.02, 0.01);
  EXPECT_NEAR(above.high - below.high, 0.02, 0.01);
}

TEST(EventInterval, WithoutVarianceIsAPoint) {
  EXPECT_EQ(event_interval(3, 0, 0).low, 3);
  EXPECT_EQ(event_interval(3, 0, 0).high, 3);
  EXPECT_EQ(event_interval(0, 0, 0).high, 0);
}

}  // namespace
}  // namespace crosstalk::attribution::intervals_test
