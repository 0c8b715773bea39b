// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/tries.h"

#include <gtest/gtest.h>

namespace crosstalk::collectors::calibration {
namespace {

TEST(Tries, TheBestCountsWhenAQuarterIsNear) {
  const models::Figure figure = time_figure({2.0, 1.0, 1.02, 5.0, 1.01, 9.0, 3.0, 4.0}, "method");
  EXPECT_EQ(figure.value, 1.0);
  EXPECT_NEAR(figure.spread, 0.02, 1e-6);
  EXPECT_EQ(figure.median, 3.0);
  EXPECT_EQ(figure.tries, 8U);
  EXPECT_EQ(figure.method, "method");
  EXPECT_EQ(figure.refused, "");
}

TEST(Tries, ALonelyBestTryIsNotBelieved) {
  const models::Figure figure = time_figure({1.0, 1.5, 1.6, 1.5, 1.7, 1.8, 1.9, 2.0}, "method");
  EXPECT_EQ(figure.value, std::nullopt);
  EXPECT_NE(figure.refused.find("three quarters of the tries differ from the best by 50 % or more"), std::string::npos)
      << figure.refused;
  EXPECT_EQ(figure.tries, 8U);
}

TEST(Tries, ARateIsTheInverse) {
  const models::Figure figure = rate_figure({0.5, 0.25, 0.25, 0.25, 0.25}, "");
  EXPECT_EQ(figure.value, 4.0);
  EXPECT_EQ(figure.median, 4.0);
}

TEST(Tries, TooFewTriesAreRefused) {
  EXPECT_NE(time_figure({1, 1, 1, 1}, "").refused.find("nothing disturbed 4 of the tries"), std::string::npos);
  EXPECT_FALSE(time_figure({}, "").refused.empty());
  EXPECT_FALSE(rate_figure({}, "").refused.empty());
  EXPECT_FALSE(median_figure({}, "").refused.empty());
}

TEST(Tries, TheMedianHasHalfOfTheTriesAroundIt) {
  const models::Figure figure = median_figure({1, 9, 10, 10, 10, 11, 12, 100}, "");
  EXPECT_EQ(figure.value, 10.0);
  EXPECT_NEAR(figure.spread, 0.1, 1e-6);
  EXPECT_EQ(median_figure({1, 1, 1, 10, 10, 10, 30, 30, 30}, "").value, std::nullopt);
}

TEST(Tries, StopsWhenAQuarterAgrees) {
  unsigned calls = 0;
  const auto times = collect({1, 8, 50, UINT64_MAX}, [&] {
    ++calls;
    return std::optional(1.0);
  });
  EXPECT_EQ(calls, 8U);
  EXPECT_EQ(times.size(), 8U);
}

TEST(Tries, GoesOnWhileTheyDisagreeAndGivesUp) {
  double seconds = 1024;
  EXPECT_EQ(collect({1, 8, 50, UINT64_MAX}, [&] { return std::optional(seconds /= 2); }).size(), 50U);
}

TEST(Tries, LeavesOutSpoiltOnes) {
  unsigned calls = 0;
  const auto times =
      collect({1, 4, 10, UINT64_MAX}, [&] { return ++calls % 2 == 0 ? std::optional(1.0) : std::nullopt; });
  EXPECT_EQ(times.size(), 4U);
  EXPECT_EQ(calls, 8U);
  EXPECT_TRUE(collect({1, 4, 10, UINT64_MAX}, [] { return std::optional<double>(); }).empty());
}

TEST(Tries, MakesNoneAfterTheDeadline) {
  EXPECT_TRUE(collect({1, 4, 10, 0}, [] { return std::optional(1.0); }).empty());
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
}  // namespace crosstalk::collectors::calibration
