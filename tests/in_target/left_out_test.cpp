// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/objects/left_out.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "collectors/in_target/objects/block_table.h"
#include "collectors/in_target/objects/blocks.h"

namespace crosstalk::in_target::left_out_test {
namespace {

using left_out::Map;

std::unique_ptr<Map> empty_map() { return std::make_unique<Map>(); }

TEST(LeftOut, ExactlyTheGranulesOfABlock) {
  for (const std::uint64_t bytes : {1U, 15U, 16U, 17U, 64U, 1000U, 1024U, 5000U}) {
    const auto map = empty_map();
    const std::uint64_t begin = 0x10'0000'03f0;  // the last granule of a word
    left_out::set(*map, begin, bytes);
    EXPECT_FALSE(left_out::holds(*map, begin - 1));
    for (std::uint64_t at = begin; at < begin + bytes; ++at) {
      ASSERT_TRUE(left_out::holds(*map, at)) << bytes << " at " << at - begin;
    }
    EXPECT_FALSE(left_out::holds(*map, (begin + bytes + 15) / 16 * 16)) << bytes;
    left_out::clear(*map, begin, bytes);
    EXPECT_FALSE(left_out::holds(*map, begin));
    EXPECT_FALSE(left_out::holds(*map, begin + bytes - 1));
  }
}

TEST(LeftOut, TheQuickLookIsNeverWrong) {
  const auto map = empty_map();
  const std::uint64_t begin = 0x20'0000'0100;
  EXPECT_FALSE(left_out::is_set(*map, begin, 48));
  left_out::set(*map, begin, 48);
  EXPECT_TRUE(left_out::is_set(*map, begin, 48));
  EXPECT_FALSE(left_out::is_set(*map, begin, 0));  // it does not look closer
  EXPECT_FALSE(left_out::is_set(*map, begin, 49));
  EXPECT_FALSE(left_out::is_set(*map, begin - 16, 48));
}

TEST(LeftOut, BlocksOverRegionsAndReservedTerabytes) {
  const auto map = empty_map();
  const std::uint64_t begin = 0x30'0000'ff00;
  left_out::set(*map, begin, 0x20000);
  EXPECT_TRUE(left_out::holds(*map, begin + 0x1ffff));
  EXPECT_FALSE(left_out::holds(*map, begin + 0x20000));
  left_out::clear(*map, begin + 0x100, std::uint64_t{1} << 40U);
  EXPECT_TRUE(left_out::holds(*map, begin + 0xff));
  EXPECT_FALSE(left_out::holds(*map, begin + 0x100));
  EXPECT_FALSE(left_out::holds(*map, begin + 0x1ffff));
}

TEST(LeftOut, WhereThereIsNoRoomNothingIsKnown) {
  const auto map = empty_map();
  constexpr std::uint64_t region = std::uint64_t{1} << left_out::region_shift;
  for (std::uint64_t i = 0; i < std::uint64_t{4} * left_out::region_count; ++i) {
    left_out::set(*map, i * region, 16);
  }
  for (std::uint64_t i = 0; i < std::uint64_t{4} * left_out::region_count; ++i) {
    ASSERT_TRUE(left_out::holds(*map, i * region)) << i;
  }
}

/// Neighbours in one word, each with a thread of its own.
TEST(LeftOut, ThreadsDoNotTouchTheirNeighboursBits) {
  const auto map = empty_map();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 20'000; ++i) {
        const std::uint64_t begin = 0x40'0000'0000 + i / 1000 * 0x10000 + t * 32;
        left_out::set(*map, begin, 32);
        wrong += left_out::holds(*map, begin) && left_out::is_set(*map, begin, 32) ? 0 : 1;
        left_out::clear(*map, begin, 32);
        wrong += left_out::holds(*map, begin + 16) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

/// An allocator that frees memory at random, while the threshold rises and falls: named blocks are alive.
TEST(LeftOut, TheTableNamesNoBlockThatIsGone) {
  constexpr std::uint64_t arena = 0x50'0000'0000;
  constexpr std::uint64_t arena_bytes = 1U << 20U;
  struct Live {
    std::uint64_t bytes, site;
    bool entered;
  };
  std::map<std::uint64_t, Live> live;
  std::minstd_rand random(1);  // NOLINT: the same each time
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  std::uint64_t threshold = 0;
  std::uint64_t named = 0;
  std::uint64_t unnamed = 0;
  for (std::uint64_t site = 1; site < 200'000; ++site) {
    if (site % 5000 == 0) {
      constexpr std::uint64_t thresholds[] = {0, 64, 256, 1024};
      threshold = thresholds[draw(4)];
      track_blocks(true, threshold);
    }
    const std::uint64_t bytes = 1 + draw(std::uint64_t{16} << draw(9));
    const std::uint64_t begin = arena + draw((arena_bytes - bytes) / 32) * 32;  // closer none packs
    auto next = live.lower_bound(begin);
    if (next != live.begin() && std::prev(next)->first + std::prev(next)->second.bytes > begin) {
      --next;
    }
    while (next != live.end() && next->first < begin + bytes) {
      next = live.erase(next);
    }
    blocks::note(begin, bytes, site, profile::BlockKind::heap);
    live[begin] = {bytes, site, bytes >= threshold};
    const auto some = live.lower_bound(arena + draw(arena_bytes));
    for (const auto& [at, block] : {*live.find(begin), some != live.end() ? *some : *live.find(begin)}) {
      BlockInfo info;
      const bool found = find_block(at + draw(block.bytes), info);
      ASSERT_EQ(found, block.entered) << site << ": " << block.bytes;
      if (found) {
        ASSERT_EQ(info.site, block.site);
        ASSERT_EQ(info.begin, at);
      }
      (found ? named : unnamed) += 1;
    }
  }
  EXPECT_GT(named, 10'000U);
  EXPECT_GT(unnamed, 10'000U);
  track_blocks(true, 0);
}

/// Threads that allocate next to each other, above and below the threshold.
TEST(LeftOut, NeighboursOfManyThreadsAreToldApart) {
  constexpr std::uint64_t arena = 0x60'0000'0000;
  constexpr std::uint64_t slot_bytes = 256;  // four in a word of bits
  constexpr std::uint64_t thread_count = 4;
  track_blocks(true, 128);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 100'000; ++i) {
        const std::uint64_t begin = arena + (i % 64 * thread_count + t) * slot_bytes;
        const std::uint64_t bytes = i / 64 % 2 == 0 ? 200 : 100;
        blocks::note(begin, bytes, i + 1, profile::BlockKind::heap);
        BlockInfo info;
        const bool found = find_block(begin + i % bytes, info);
        wrong += found != (bytes == 200) || (found && (info.site != i + 1 || info.begin != begin)) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0U);
  track_blocks(true, 0);
}

}  // namespace
}  // namespace crosstalk::in_target::left_out_test
