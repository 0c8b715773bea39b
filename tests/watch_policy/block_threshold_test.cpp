// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/block_threshold.h"

#include <gtest/gtest.h>

namespace crosstalk::watch_policy::block_threshold_test {
namespace {

constexpr std::uint64_t window_ns = 20'000'000;
constexpr double share = 0.0075;
constexpr std::uint64_t affordable_blocks = 1500;  // in a window: 150 us of 20 ms

BlockCounts of(std::uint64_t bytes, std::uint64_t count) {
  BlockCounts made{};
  made[block_class(bytes)] = count;
  return made;
}

std::uint32_t after(BlockThreshold& threshold, const BlockCounts& made, int windows) {
  std::uint32_t first = 0;
  for (int i = 0; i < windows; ++i) {
    first = threshold.review(made, window_ns, share);
  }
  return first;
}

TEST(BlockThreshold, ClassesArePowersOfTwo) {
  EXPECT_EQ(block_class(0), 0U);
  EXPECT_EQ(block_class(31), 0U);
  EXPECT_EQ(block_class(32), 1U);
  EXPECT_EQ(block_class(63), 1U);
  EXPECT_EQ(block_class(64), 2U);
  EXPECT_EQ(block_class(~std::uint64_t{0}), block_classes - 1);
  for (std::uint32_t i = 1; i < block_classes; ++i) {
    EXPECT_EQ(block_class(least_block(i)), i);
    EXPECT_EQ(block_class(least_block(i) - 1), i - 1);
  }
}

TEST(BlockThreshold, WhatIsAffordableIsTheLeastClass) {
  BlockCounts made{};
  made[1] = 1000;
  made[3] = 10;
  EXPECT_EQ(affordable_class(made, 1010 * block_entry_ns), 0U);
  EXPECT_EQ(affordable_class(made, 1009 * block_entry_ns), 2U);
  EXPECT_EQ(affordable_class(made, 9 * block_entry_ns), 4U);
  made[block_classes - 1] = 1'000'000;  // of these nothing is left out
  EXPECT_EQ(affordable_class(made, 0), block_classes - 1);
}

TEST(BlockThreshold, ABurstAtTheStartIsAfforded) {
  BlockThreshold threshold;
  EXPECT_EQ(after(threshold, of(48, 90'000), 1), 0U);  // 9 ms of work
  EXPECT_EQ(after(threshold, of(48, 100), 1000), 0U);
}

TEST(BlockThreshold, WhoAllocatesAndAllocatesHasHisSmallBlocksLeftOut) {
  BlockThreshold threshold;
  BlockCounts made = of(48, 100'000);
  made[block_class(4096)] = 100;
  EXPECT_EQ(after(threshold, made, 3), block_class(48) + 1);
  EXPECT_EQ(after(threshold, made, 10'000), block_class(48) + 1);  // and it stays so
}

TEST(BlockThreshold, SlowAllocationIsNeverCut) {
  BlockThreshold threshold;
  EXPECT_EQ(after(threshold, of(48, affordable_blocks), 100'000), 0U);
}

TEST(BlockThreshold, ItFallsAgainStepByStepWhenAllocationSlowsDown) {
  BlockThreshold threshold;
  ASSERT_EQ(after(threshold, of(1024, 100'000), 3), block_class(1024) + 1);
  std::uint32_t before = block_class(1024) + 1;
  int windows = 0;
  for (; before > 0 && windows < 1000; ++windows) {
    const std::uint32_t now = after(threshold, of(1024, 100), 1);
    EXPECT_TRUE(now == before || now + 1 == before);
    before = now;
  }
  EXPECT_EQ(before, 0U);
  EXPECT_GT(windows, 20);  // not at once
}

TEST(BlockThreshold, WhatIsStillMadeTooOftenIsNotTriedAgain) {
  BlockThreshold threshold;
  const BlockCounts made = of(48, affordable_blocks * 2);
  EXPECT_EQ(after(threshold, made, 200), block_class(48) + 1);
  int changes = 0;
  std::uint32_t before = block_class(48) + 1;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint32_t now = after(threshold, made, 1);
    changes += now != before ? 1 : 0;
    before = now;
  }
  EXPECT_EQ(changes, 0);
}

/// Over the whole run, entering blocks takes no more than its share and one burst.
TEST(BlockThreshold, TheBudgetHolds) {
  BlockThreshold threshold;
  std::uint64_t spent_ns = 0;
  std::uint32_t first = 0;
  std::uint64_t random = 1;
  constexpr int windows = 5000;
  for (int i = 0; i < windows; ++i) {
    BlockCounts made{};
    const bool burst = i / 100 % 3 != 0;
    for (std::uint32_t k = 0; k + 1 < block_classes; ++k) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      made[k] = (random >> 33U) % (burst ? 20'000U >> k : 100U);
    }
    spent_ns += entry_cost_ns(made, first);
    first = threshold.review(made, window_ns, share);
  }
  EXPECT_LE(static_cast<double>(spent_ns), 1.5 * share * windows * window_ns);
  EXPECT_GE(static_cast<double>(spent_ns), 0.1 * share * windows * window_ns);
}

}  // namespace
}  // namespace crosstalk::watch_policy::block_threshold_test
