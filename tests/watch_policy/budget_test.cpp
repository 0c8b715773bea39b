// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/budget.h"

#include <gtest/gtest.h>

namespace crosstalk::watch_policy::budget_test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t grant = 1'000'000;  // before anything is earned

std::uint64_t affordable(const Budget& budget, bool exploring) {
  std::uint64_t cost = 0;
  while (budget.affords(cost + 100'000, exploring)) {
    cost += 100'000;
  }
  return cost;
}

TEST(Budget, IsAFractionOfCpuTime) {
  Budget budget;
  budget.start(0.03);
  EXPECT_EQ(affordable(budget, false), grant);
  budget.earn(second);
  EXPECT_EQ(affordable(budget, false), 30'000'000 + grant);
  budget.spend(10'000'000);
  EXPECT_EQ(affordable(budget, false), 20'000'000 + grant);
  EXPECT_DOUBLE_EQ(budget.spent_fraction(), 0.01);
}

TEST(Budget, WalksHaveATenthAndNoneWhenTheWholeIsSpent) {
  Budget budget;
  budget.start(0.03);
  budget.earn(second);
  EXPECT_TRUE(budget.affords_lookahead(3'000'000));
  EXPECT_FALSE(budget.affords_lookahead(3'300'000));  // a tenth, and the grant
  budget.look_ahead(3'000'000);
  EXPECT_TRUE(budget.affords_lookahead(100'000));
  EXPECT_FALSE(budget.affords_lookahead(300'000));
  budget.spend(31'000'000);
  EXPECT_FALSE(budget.affords_lookahead(100'000));
  budget.clear();
  EXPECT_TRUE(budget.affords_lookahead(100'000));
}

TEST(Budget, ExploringInVainKeepsToAQuarter) {
  Budget budget;
  budget.start(0.03);
  budget.earn(second);
  for (int i = 0; i < 100; ++i) {
    budget.explored(false);
  }
  EXPECT_EQ(affordable(budget, true), 7'700'000);
  budget.spend(7'700'000);
  budget.explore(7'700'000);
  EXPECT_FALSE(budget.affords(100'000, true));
  EXPECT_TRUE(budget.affords(100'000, false));
}

TEST(Budget, ExploringThatFindsSomethingEarnsMoreButNeverAll) {
  Budget budget;
  budget.start(0.03);
  budget.earn(second);
  for (int i = 0; i < 100; ++i) {
    budget.explored(i % 10 == 0);
  }
  const std::uint64_t some = affordable(budget, true);
  EXPECT_GT(some, 8'000'000U);
  for (int i = 0; i < 100; ++i) {
    budget.explored(true);
  }
  EXPECT_GT(affordable(budget, true), some);
  EXPECT_LT(affordable(budget, true), affordable(budget, false));
  budget.clear();
  budget.earn(second);
  EXPECT_EQ(affordable(budget, true), 7'700'000);
}

TEST(Budget, WhatIsLostTakesAQuarterAtMost) {
  Budget budget;
  budget.start(0.03);
  budget.earn(second);
  budget.lose(5'000'000);
  EXPECT_EQ(affordable(budget, false), 25'000'000 + grant);
  budget.lose(35'000'000);
  EXPECT_EQ(affordable(budget, false), 22'500'000 + grant);
  budget.spend(5'000'000);
  EXPECT_EQ(affordable(budget, false), 17'500'000 + grant);
  EXPECT_DOUBLE_EQ(budget.spent_fraction(), 0.045);
  budget.clear();
  budget.earn(second);
  EXPECT_EQ(affordable(budget, false), 30'000'000 + grant);
}

}  // namespace
}  // namespace crosstalk::watch_policy::budget_test
