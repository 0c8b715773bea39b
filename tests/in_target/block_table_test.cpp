// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/objects/block_table.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "collectors/in_target/objects/blocks.h"

namespace crosstalk::in_target::block_table_test {
namespace {

constexpr std::uint64_t site = 0x401000;

TEST(BlockTable, LevelsAreTheSizesUpToTwiceTheirGranule) {
  using blocks::level_of;
  EXPECT_EQ(level_of(1), 5U);
  EXPECT_EQ(level_of(64), 5U);
  EXPECT_EQ(level_of(65), 6U);
  EXPECT_EQ(level_of(128), 6U);
  EXPECT_EQ(level_of(129), 7U);
  EXPECT_EQ(level_of(std::uint64_t{1} << 30U), 29U);
  EXPECT_GT(level_of(0), blocks::highest_level);
}

TEST(BlockTable, EveryByteOfEverySizeIsFoundAndNoneBesideIt) {
  std::uint64_t begin = 0x10'0000'0000;
  for (std::uint64_t bytes = 1; bytes < 5000; bytes += bytes < 300 ? 1 : 97) {
    begin += 16 + 3 * bytes - (3 * bytes) % 16;
    blocks::insert(begin, bytes, site, profile::BlockKind::heap);
    for (std::uint64_t at = begin; at < begin + bytes; ++at) {
      BlockInfo info;
      ASSERT_TRUE(find_block(at, info)) << bytes << " at " << at - begin;
      ASSERT_EQ(info.begin, begin);
      ASSERT_EQ(info.bytes, bytes);
      ASSERT_EQ(info.site, site);
    }
    BlockInfo info;
    EXPECT_FALSE(find_block(begin - 1, info) && info.begin == begin);
    EXPECT_FALSE(find_block(begin + bytes, info) && info.begin == begin);
  }
}

TEST(BlockTable, LargeBlocksAndMappings) {
  const std::uint64_t begin = 0x7f00'0000'0000;
  blocks::insert(begin, std::uint64_t{3} << 30U, site, profile::BlockKind::mapping);
  BlockInfo info;
  ASSERT_TRUE(find_block(begin + (std::uint64_t{2} << 30U), info));
  EXPECT_EQ(info.kind, profile::BlockKind::mapping);
  blocks::remove(begin, std::uint64_t{3} << 30U);
  EXPECT_FALSE(find_block(begin + 5, info));
}

TEST(BlockTable, TheNewestOwnerOfMemoryIsNamed) {
  const std::uint64_t begin = 0x20'0000'0000;
  BlockInfo info;
  blocks::insert(begin, 4096, site, profile::BlockKind::heap);
  blocks::insert(begin + 128, 100, site + 1, profile::BlockKind::heap);  // the old one was freed and split
  ASSERT_TRUE(find_block(begin + 130, info));
  EXPECT_EQ(info.site, site + 1);
  blocks::insert(begin, 1000, site + 2, profile::BlockKind::heap);  // and merged again
  ASSERT_TRUE(find_block(begin + 130, info));
  EXPECT_EQ(info.site, site + 2);
}

TEST(BlockTable, AnotherThreadsLaterBlockIsNewerHoweverFastTheFirstWas) {
  const std::uint64_t begin = 0x21'0000'0000;
  BlockInfo info;
  for (int i = 0; i < 100'000; ++i) {
    blocks::insert(begin, 4096, site, profile::BlockKind::heap);
  }
  std::thread([&] { blocks::insert(begin + 64, 100, site + 1, profile::BlockKind::heap); }).join();
  ASSERT_TRUE(find_block(begin + 70, info));
  EXPECT_EQ(info.site, site + 1);
}

TEST(BlockTable, OneReportABlockAndGeneration) {
  const std::uint64_t begin = 0x22'0000'0000;
  BlockInfo info;
  for (int generation = 0; generation < 40; ++generation) {
    blocks::insert(begin, 64, site, profile::BlockKind::heap);
    ASSERT_TRUE(find_block(begin, info) && info.first_report);
    ASSERT_TRUE(find_block(begin + 1, info) && !info.first_report);
    blocks_after_fork();
    ASSERT_TRUE(find_block(begin + 2, info) && info.first_report);
    ASSERT_TRUE(find_block(begin + 3, info) && !info.first_report);
  }
}

TEST(BlockTable, ThresholdAndOff) {
  BlockInfo info;
  track_blocks(true, 100);
  blocks::note(0x23'0000'0000, 99, site, profile::BlockKind::heap);
  EXPECT_FALSE(find_block(0x23'0000'0000, info));
  blocks::note(0x23'0000'0000, 100, site, profile::BlockKind::heap);
  EXPECT_TRUE(find_block(0x23'0000'0000, info));
  track_blocks(false, 0);
  blocks::note(0x24'0000'0000, 1 << 20, site, profile::BlockKind::heap);
  EXPECT_FALSE(find_block(0x24'0000'0000, info));
  track_blocks(true, 0);
}

TEST(BlockTable, NothingIsLostWhileALevelFits) {
  const std::uint64_t begin = 0x55'0000'0000;
  for (std::uint64_t at = 0; at < blocks::covered_bytes; at += 48) {
    blocks::insert(begin + at, 33, site + at, profile::BlockKind::heap);
  }
  for (std::uint64_t at = 0; at < blocks::covered_bytes; at += 48) {
    BlockInfo info;
    ASSERT_TRUE(find_block(begin + at + 32, info));
    ASSERT_EQ(info.site, site + at);
  }
}

/// Writers that fight for the same entries, and a reader that must never see a mixture.
TEST(BlockTable, AReaderNeverSeesAMixture) {
  const std::uint64_t begin = 0x66'0000'0000;
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (std::uint64_t t = 0; t < 3; ++t) {
    writers.emplace_back([&, t] {
      for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        const std::uint64_t bytes = 33 + (i + t) % 32;
        blocks::insert(begin + t, bytes, (begin + t) ^ bytes * 77, profile::BlockKind::heap);
      }
    });
  }
  std::uint64_t found = 0;
  std::uint64_t mixed = 0;
  // Writers without pause leave few moments in which an entry is whole: wait for this number of them.
  constexpr std::uint64_t wanted = 200;
  for (int i = 0; i < 2'000'000 || (found <= wanted && i < 500'000'000); ++i) {
    BlockInfo info;
    if (find_block(begin + 8, info)) {
      ++found;
      mixed += info.begin < begin || info.begin >= begin + 3 || info.site != (info.begin ^ info.bytes * 77) ? 1 : 0;
    }
  }
  stop = true;
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(mixed, 0U);
  EXPECT_GT(found, wanted);
}

// In a process whose first table is in use: tests that a block is still named after threads with heaps of their own
// have begun at once, while one replaces the table and the others allocate.
bool keeps_its_name_while_threads_begin() {
  constexpr std::uint64_t early = 0x55'1238'5040;  // shares places with others' blocks in the first table only
  constexpr std::uint64_t ranges = 0x7f00'0000'0000;
  blocks::insert(early, 52, site, profile::BlockKind::heap);
  std::atomic<int> waiting{4};
  std::vector<std::thread> threads;
  for (std::uint64_t t = static_cast<std::uint64_t>(waiting); t-- > 0;) {
    threads.emplace_back([&, t] {
      for (waiting.fetch_sub(1); waiting.load() > 0;) {
        sched_yield();
      }
      for (std::uint64_t i = 0; i < 2048; ++i) {  // half of the first table, a 32nd of the full one
        blocks::insert(ranges + (t << blocks::range_bits) + i * 32, 24, site + 1, profile::BlockKind::heap);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  BlockInfo info;
  return find_block(early, info) && info.site == site;
}

void replace_the_first_table_often() {
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      _exit(keeps_its_name_while_threads_begin() ? 0 : 1);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
      _exit(1);
    }
  }
  _exit(0);
}

TEST(BlockTableDeathTest, ABlockKeepsItsNameWhileAnotherThreadReplacesTheFirstTable) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // executes the program again: its first table is empty
  EXPECT_EXIT(replace_the_first_table_often(), testing::ExitedWithCode(0), "");
}

// Works before anything is tracked, too: a clock may expire during the session's start.
TEST(BlockTable, WhatAThreadHasMadeIsFoundByItsThreadPointer) {
  const auto of_this_thread = [] {
    std::uint64_t thread_pointer = 0;
    asm("movq %%fs:0, %0" : "=r"(thread_pointer));  // it points to itself (x86-64 psABI)
    return &blocks::made_blocks_of(thread_pointer);
  };
  blocks::MadeBlocks* const here = of_this_thread();
  EXPECT_EQ(here, &blocks::made_blocks);
  std::thread([&] {
    EXPECT_EQ(of_this_thread(), &blocks::made_blocks);
    EXPECT_NE(of_this_thread(), here);
  }).join();
}

}  // namespace
}  // namespace crosstalk::in_target::block_table_test
