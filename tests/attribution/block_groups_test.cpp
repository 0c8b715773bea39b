// SPDX-License-Identifier: Apache-2.0
#include "attribution/objects/block_groups.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace crosstalk::attribution::block_groups_test {
namespace {

using Groups = std::vector<std::vector<std::uint32_t>>;

/// `watches` of each block, by threads and cost that the functions give.
template <class Threads, class Cost>
std::vector<BlockSighting> seen(std::uint32_t blocks, int watches, Threads threads, Cost cost) {
  std::vector<BlockSighting> sightings;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    for (int i = 0; i < watches; ++i) {
      sightings.push_back({block, threads(block), cost(block)});
    }
  }
  return sightings;
}
const auto same_pair = [](std::uint32_t) { return std::pair{0U, 1U}; };
const auto same_cost = [](std::uint32_t) { return 1.0; };

TEST(BlockGroups, BlocksThatOnePairUsesAlikeAreOneGroup) {
  EXPECT_EQ(alike_blocks(40, seen(40, 6, same_pair, same_cost)).size(), 1U);
  EXPECT_EQ(alike_blocks(1, seen(1, 6, same_pair, same_cost)), (Groups{{0}}));
  EXPECT_EQ(alike_blocks(3, {}), (Groups{{0, 1, 2}}));
}

TEST(BlockGroups, BlocksThatManyThreadsShareAtRandomAreOneGroup) {
  std::mt19937 random(7);
  const auto any_pair = [&](std::uint32_t) {
    const std::uint32_t a = random() % 15;
    return std::pair{a, a + 1};
  };
  for (const int watches : {1, 2, 5, 20}) {
    for (int repetition = 0; repetition < 20; ++repetition) {
      EXPECT_EQ(alike_blocks(40, seen(40, watches, any_pair, same_cost)).size(), 1U) << watches;
    }
  }
}

TEST(BlockGroups, EachPairWithItsOwnBlockIsTold) {
  const auto own_pair = [](std::uint32_t block) { return std::pair{2 * (block % 2), 2 * (block % 2) + 1}; };
  EXPECT_EQ(alike_blocks(2, seen(2, 10, own_pair, same_cost)), (Groups{{0}, {1}}));
  EXPECT_EQ(alike_blocks(6, seen(6, 10, own_pair, same_cost)), (Groups{{0, 2, 4}, {1, 3, 5}}))
      << "by pair, not by block";
}

TEST(BlockGroups, APairThatIsNotItsOwnAtTimesIsStillTold) {
  std::mt19937 random(3);
  const auto mostly_own = [&](std::uint32_t block) {
    const std::uint32_t owner = random() % 20 == 0 ? random() % 8 : block;
    return std::pair{2 * owner, 2 * owner + 1};
  };
  EXPECT_EQ(alike_blocks(8, seen(8, 20, mostly_own, same_cost)).size(), 8U);
}

TEST(BlockGroups, WhatWasSeenOnceEachTellsNothing) {
  std::uint32_t next = 0;  // threads that live for a moment: a new pair each time
  const auto new_pair = [&](std::uint32_t) { return std::pair{next++, 5000U}; };
  EXPECT_EQ(alike_blocks(30, seen(30, 2, new_pair, same_cost)).size(), 1U);
  const auto own_pair = [](std::uint32_t block) { return std::pair{2 * block, 2 * block + 1}; };
  EXPECT_EQ(alike_blocks(30, seen(30, 1, own_pair, same_cost)).size(), 1U);
}

TEST(BlockGroups, AFewThatHoldNearlyAllTheCostStandAlone) {
  const auto cost = [](std::uint32_t block) { return block == 17 ? 100.0 : block == 3 ? 60.0 : 0.01; };
  const Groups groups = alike_blocks(1000, seen(1000, 5, same_pair, cost));
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0], (std::vector<std::uint32_t>{17}));
  EXPECT_EQ(groups[1], (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(groups[2].size(), 998U);
}

TEST(BlockGroups, ACostThatRestsOnAFewWatchesDoesNotStandOut) {
  const auto cost = [](std::uint32_t block) { return block == 17 ? 1000.0 : 1.0; };
  EXPECT_EQ(alike_blocks(40, seen(40, 4, same_pair, cost)).size(), 1U);
}

TEST(BlockGroups, OnlyThoseThatAreFarAboveTheOthersStandAlone) {
  const auto one = [](std::uint32_t block) { return block == 4 ? 73.0 : block == 7 ? 6.0 : 2.0; };
  EXPECT_EQ(alike_blocks(12, seen(12, 10, same_pair, one))[0], (std::vector<std::uint32_t>{4}));
  EXPECT_EQ(alike_blocks(12, seen(12, 10, same_pair, one)).size(), 2U);
  const auto slope = [](std::uint32_t block) { return 10.0 / (1 + block); };
  EXPECT_EQ(alike_blocks(8, seen(8, 10, same_pair, slope)).size(), 1U);
}

TEST(BlockGroups, MostBlocksAreNoFew) {
  const auto cost = [](std::uint32_t block) { return block < 2 ? 10.0 : 0.1; };
  EXPECT_EQ(alike_blocks(3, seen(3, 10, same_pair, cost)).size(), 1U);
}

TEST(BlockGroups, EveryBlockIsInOneGroup) {
  const auto own_pair = [](std::uint32_t block) { return std::pair{block % 100, 200U}; };
  const auto groups = alike_blocks(300, seen(300, 8, own_pair, same_cost));
  EXPECT_GT(groups.size(), 1U);
  EXPECT_LE(groups.size(), 24U) << "a hundred rows of one site are no help";
  std::set<std::uint32_t> all;
  for (const auto& group : groups) {
    for (const std::uint32_t block : group) {
      EXPECT_TRUE(all.insert(block).second) << block;
    }
  }
  EXPECT_EQ(all.size(), 300U);
}

}  // namespace
}  // namespace crosstalk::attribution::block_groups_test
