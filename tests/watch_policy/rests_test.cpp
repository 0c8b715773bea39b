// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/rests.h"

#include <gtest/gtest.h>

#include "collectors/watch_policy/budget.h"

namespace crosstalk::watch_policy::rests_test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t begin = 5 * second;

Account account(double earned, double spent, double lost) { return {earned, spent, lost}; }

TEST(Rests, WatchesForHalfASecondAtFirstWhateverItCosts) {
  Rests rests;
  const Account dear = account(0.03e9, 0.01e9, 0.05e9);
  EXPECT_FALSE(rests.resting(begin, dear, false));
  EXPECT_FALSE(rests.resting(begin + second / 2 - 1000, dear, false));
  EXPECT_FALSE(rests.ever());
  EXPECT_TRUE(rests.resting(begin + second / 2 + 2, dear, false));
  EXPECT_TRUE(rests.resting());
  EXPECT_TRUE(rests.ever());
}

TEST(Rests, GoesOnWhenAllIsEarned) {
  Rests rests;
  rests.resting(begin, {}, false);
  ASSERT_TRUE(rests.resting(begin + 2 * second, account(0.06e9, 0.02e9, 0.11e9), false));
  EXPECT_TRUE(rests.resting(begin + 3 * second, account(0.09e9, 0.02e9, 0.11e9), false));
  EXPECT_FALSE(rests.resting(begin + 4 * second, account(0.12e9, 0.02e9, 0.11e9), false));
  // And for a second at least, though it is dear again at once.
  EXPECT_FALSE(rests.resting(begin + 4 * second + second / 2, account(0.13e9, 0.02e9, 0.16e9), false));
  EXPECT_TRUE(rests.resting(begin + 5 * second + 2, account(0.15e9, 0.02e9, 0.19e9), false));
}

TEST(Rests, NotForWhatTheRestOfTheBudgetBears) {
  Rests rests;
  rests.resting(begin, {}, false);
  EXPECT_FALSE(rests.resting(begin + 2 * second, account(0.06e9, 0.10e9, 0.029e9), false));
  EXPECT_FALSE(rests.resting(begin + 2 * second, account(0.06e9, 0.02e9, 0.045e9), false));
}

TEST(Rests, NotWhereOtherEventsStayOpenInAnyProcess) {
  Rests rests;
  rests.resting(begin, {}, false);
  const Account dear = account(0.06e9, 0.02e9, 0.10e9);
  EXPECT_FALSE(rests.resting(begin + 2 * second, dear, true));
  EXPECT_FALSE(rests.resting(begin + 2 * second + second / 2, dear, false));  // another process asks
  EXPECT_TRUE(rests.resting(begin + 4 * second, dear, false));
  EXPECT_FALSE(rests.resting(begin + 4 * second, dear, true));
}

// A program that switches so often that closed events take 5 % of its time and watching another 3 %: its cost in a
// minute is near the budget.
TEST(Rests, KeepsToTheBudgetInTheLongRun) {
  constexpr std::uint64_t step = second / 250;
  Rests rests;
  double spent = 0;
  double lost = 0;
  std::uint64_t last_event = 0;
  std::uint64_t watched = 0;
  const std::uint64_t end = begin + 60 * second;
  for (std::uint64_t now = begin; now < end; now += step) {
    const auto cpu = static_cast<double>(now - begin);
    const bool watches = !rests.resting(now, account(0.03 * cpu, spent, lost), false);
    last_event = watches ? now : last_event;
    watched += watches ? step : 0;
    spent += 0.01 * static_cast<double>(step) + (watches ? 0.02 * static_cast<double>(step) : 0);
    lost += now < last_event + second ? 0.05 * static_cast<double>(step) : 0;
  }
  const auto all = static_cast<double>(end - begin);
  EXPECT_LT((spent + lost) / all, 0.036);
  EXPECT_GT((spent + lost) / all, 0.03);
  EXPECT_GT(static_cast<double>(watched) / all, 0.15);
}

// Two processes ask in turn: they watch at the same times, by their common account.
TEST(Rests, AreOfAllProcessesThatShareThem) {
  CommonBudget all;
  Rests& rests = all.rests;
  const CommonAccount& common = all.account;
  Budget one;
  Budget other;
  one.start(0.03, &all);
  other.start(0.03, &all);
  rests.resting(begin, common.read(), false);
  one.earn(second);
  one.lose(second / 20);
  EXPECT_TRUE(rests.resting(begin + second, common.read(), false));
  EXPECT_TRUE(rests.resting());
  other.earn(second);
  other.spend(second / 100);
  EXPECT_FALSE(rests.resting(begin + second + 1000, common.read(), false));
  one.clear();  // of a process: what it has spent is still the recording's
  EXPECT_DOUBLE_EQ(common.read().earned, 0.06e9);
  EXPECT_DOUBLE_EQ(common.read().spent + common.read().lost, 0.06e9);
}

}  // namespace
}  // namespace crosstalk::watch_policy::rests_test
