// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/tries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace crosstalk::collectors::calibration::tries_test {
namespace {

/// Tries that nothing disturbed.
Tries quiet(std::vector<double> seconds) {
  Tries tries;
  std::sort(seconds.begin(), seconds.end());
  tries.quiet = std::move(seconds);
  return tries;
}

TEST(Tries, TheBestCountsWhenAQuarterIsNear) {
  const models::Figure figure = time_figure(quiet({2.0, 1.0, 1.02, 5.0, 1.01, 9.0, 3.0, 4.0}), "method");
  EXPECT_EQ(figure.value, 1.0);
  EXPECT_NEAR(figure.spread, 0.02, 1e-6);
  EXPECT_EQ(figure.median, 3.0);
  EXPECT_EQ(figure.tries, 8U);
  EXPECT_EQ(figure.disturbed, 0U);
  EXPECT_EQ(figure.method, "method");
  EXPECT_EQ(figure.refused, "");
}

TEST(Tries, ALonelyBestTryIsNotBelieved) {
  const models::Figure figure = time_figure(quiet({1.0, 1.5, 1.6, 1.5, 1.7, 1.8, 1.9, 2.0}), "method");
  EXPECT_EQ(figure.value, std::nullopt);
  EXPECT_NE(figure.refused.find("three quarters of the tries differ from the best by 50 % or more"), std::string::npos)
      << figure.refused;
  EXPECT_EQ(figure.tries, 8U);
}

TEST(Tries, ARateIsTheInverse) {
  const models::Figure figure = rate_figure(quiet({0.5, 0.25, 0.25, 0.25, 0.25}), "");
  EXPECT_EQ(figure.value, 4.0);
  EXPECT_EQ(figure.median, 4.0);
}

TEST(Tries, TooFewTriesAreRefused) {
  Tries few = quiet({1, 1, 1});
  few.disturbed = {2};
  few.spoilt = 5;
  EXPECT_EQ(time_figure(few, "").refused, "4 of 9 tries told something, and 5 are needed: the machine is too busy");
  few.out_of_time = true;
  EXPECT_EQ(median_figure(few, "").refused,
            "4 of 9 tries told something in the time that the figure has, and 5 are needed: the machine is too busy");
  EXPECT_EQ(rate_figure({}, "").refused, "no time was left: the machine is too busy");
  EXPECT_EQ(rate_figure({}, "").tries, 0U);
}

TEST(Tries, TheMedianHasHalfOfTheTriesAroundIt) {
  const models::Figure figure = median_figure(quiet({1, 9, 10, 10, 10, 11, 12, 100}), "");
  EXPECT_EQ(figure.value, 10.0);
  EXPECT_NEAR(figure.spread, 0.1, 1e-6);
  EXPECT_EQ(median_figure(quiet({1, 1, 1, 10, 10, 10, 30, 30, 30}), "").value, std::nullopt);
}

TEST(Tries, DisturbedOnesDoNotCountWhereThereAreEnoughOthers) {
  Tries tries = quiet({2, 2, 2, 2, 2});
  tries.disturbed = {1, 1, 9, 9};
  const models::Figure figure = time_figure(tries, "");
  EXPECT_EQ(figure.value, 2.0);
  EXPECT_EQ(figure.median, 2.0);
  EXPECT_EQ(figure.tries, 9U);
  EXPECT_EQ(figure.disturbed, 4U);
}

TEST(Tries, DisturbedOnesCountWhereThereIsNotEnoughElse) {
  Tries tries = quiet({2, 2.1});
  tries.disturbed = {2.2, 3, 4, 5};
  EXPECT_EQ(tries.counting(), (std::vector<double>{2, 2.1, 2.2, 3, 4, 5}));
  EXPECT_EQ(time_figure(tries, "").value, 2.0);
  EXPECT_EQ(time_figure(tries, "").disturbed, 4U);
  tries.quiet = {1};
  const models::Figure figure = time_figure(tries, "");
  EXPECT_EQ(figure.value, std::nullopt) << "the best one is alone";
  EXPECT_NE(figure.refused.find("and nearly all were disturbed"), std::string::npos) << figure.refused;
}

TEST(Tries, StopsWhenAQuarterAgrees) {
  unsigned calls = 0;
  const Tries tries = collect({1, 8, 50, UINT64_MAX}, [&] {
    ++calls;
    return Trial{1};
  });
  EXPECT_EQ(calls, 8U);
  EXPECT_EQ(tries.quiet.size(), 8U);
  EXPECT_FALSE(tries.out_of_time);
}

TEST(Tries, GoesOnWhileTheyDisagreeAndGivesUp) {
  double seconds = 1024;
  EXPECT_EQ(collect({1, 8, 50, UINT64_MAX}, [&] { return Trial{seconds /= 2}; }).quiet.size(), 50U);
}

TEST(Tries, RepeatsDisturbedAndSpoiltOnes) {
  unsigned calls = 0;
  const Tries tries = collect({1, 4, 10, UINT64_MAX}, [&]() -> std::optional<Trial> {
    ++calls;
    return calls % 3 == 0 ? std::nullopt : std::optional(Trial{1, calls % 3 == 1});
  });
  EXPECT_EQ(tries.quiet.size(), 4U);
  EXPECT_EQ(tries.disturbed.size(), 4U);
  EXPECT_EQ(tries.spoilt, 3U);
  EXPECT_EQ(tries.made(), calls);
}

TEST(Tries, RepeatsThemNotForEver) {
  EXPECT_EQ(collect({1, 4, 10, UINT64_MAX}, [] { return std::optional<Trial>(); }).spoilt, 100U);
  EXPECT_EQ(collect({1, 4, 10, UINT64_MAX}, [] { return Trial{1, true}; }).disturbed.size(), 100U);
}

TEST(Tries, MakesNoneAfterTheDeadline) {
  const Tries tries = collect({1, 4, 10, 0}, [] { return Trial{1}; });
  EXPECT_EQ(tries.made(), 0U);
  EXPECT_TRUE(tries.out_of_time);
}

TEST(Tries, FindsHowManyRoundsTakeATry) {
  const Effort effort{2'000'000, 1, 1, UINT64_MAX};
  const std::uint64_t rounds = rounds_for(effort, [](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      asm volatile("" : "+r"(i));
    }
  });
  EXPECT_GT(rounds, 1000U);         // 2 us a round
  EXPECT_LT(rounds, 200'000'000U);  // 10 ps a round
}

}  // namespace
}  // namespace crosstalk::collectors::calibration::tries_test
