// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/counter.h"

#include <gtest/gtest.h>

namespace crosstalk::reference::counter_test {
namespace {

constexpr std::size_t plenty = 64U << 20U;

class Counting : public testing::Test {
 protected:
  bool access(ThreadIndex thread, std::uint64_t address, std::uint32_t bytes, AccessKind kind, CodeIndex code = 0) {
    return counter.access({thread, code, address, bytes, kind}, cursors[thread]);
  }
  [[nodiscard]] Counts data(std::uint64_t address, ThreadIndex producer, ThreadIndex consumer,
                            std::uint32_t block = 0) const {
    const auto found = counter.by_data().find({address, block, producer, consumer});
    return found == counter.by_data().end() ? Counts{} : found->second;
  }

  Counter counter{plenty};
  std::array<Counter::Cursor, 4> cursors;
};

TEST_F(Counting, FilesByInstructionsAndByTheConsumersAddress) {
  access(1, 0x1008, 8, AccessKind::store, 5);
  access(2, 0x1008, 4, AccessKind::load, 6);
  ASSERT_EQ(counter.by_code().size(), 1U);
  EXPECT_EQ(counter.by_code().begin()->first, (CodePair{1, 2, 5, 6}));
  EXPECT_EQ(counter.by_code().begin()->second.true_sharing, 1U);
  EXPECT_EQ(data(0x1008, 1, 2).true_sharing, 1U);
}

TEST_F(Counting, AnAccessAcrossLinesTouchesBoth) {
  access(1, 0x103c, 8, AccessKind::store);  // 4 bytes on either line
  access(2, 0x1038, 8, AccessKind::load);
  access(2, 0x1040, 1, AccessKind::load);
  EXPECT_EQ(data(0x1038, 1, 2).true_sharing, 1U);
  EXPECT_EQ(data(0x1040, 1, 2).true_sharing, 1U);
}

TEST_F(Counting, AnAccessAcrossPagesTouchesBoth) {
  access(1, 0x1ffc, 8, AccessKind::store);
  access(2, 0x1ffc, 8, AccessKind::load);
  EXPECT_EQ(data(0x1ffc, 1, 2).true_sharing, 1U);
  EXPECT_EQ(data(0x2000, 1, 2).true_sharing, 1U);
}

TEST_F(Counting, InvalidationsAreApart) {
  access(1, 0x1000, 8, AccessKind::store);
  access(2, 0x1000, 8, AccessKind::load);
  access(1, 0x1000, 8, AccessKind::store);
  EXPECT_EQ(counter.invalidations(), (std::map<ThreadPair, std::uint64_t>{{{1, 2}, 1}}));
  EXPECT_EQ(data(0x1000, 1, 2).true_sharing, 1U);
}

TEST_F(Counting, MemoryThatCameAnewHasNoHistory) {
  access(1, 0x1000, 8, AccessKind::store);
  access(1, 0x3000, 8, AccessKind::store);
  counter.forget(0x1000, 0x3000);
  access(2, 0x1000, 8, AccessKind::load);
  access(2, 0x3000, 8, AccessKind::load);
  EXPECT_EQ(data(0x1000, 1, 2).true_sharing, 0U);
  EXPECT_EQ(data(0x3000, 1, 2).true_sharing, 1U);
}

TEST_F(Counting, ForgettingAHugeRangeForgetsWhatIsInIt) {
  access(1, 0x5000, 8, AccessKind::store);
  counter.forget(0, 1ULL << 47U);
  access(2, 0x5000, 8, AccessKind::load);
  EXPECT_TRUE(counter.by_data().empty());
}

TEST_F(Counting, MemoryIsGivenBackWhenForgotten) {
  const std::size_t before = counter.memory();
  access(1, 0x1000, 8, AccessKind::store);
  EXPECT_GT(counter.memory(), before);
  counter.forget(0x1000, 0x2000);
  EXPECT_EQ(counter.memory(), before);
}

TEST_F(Counting, BlocksAreThoseThatLiveAtTheTime) {
  counter.allocated({0x1000, 64, 0xaa});
  access(1, 0x1000, 8, AccessKind::store);
  access(2, 0x1000, 8, AccessKind::load);
  counter.freed(0x1000);
  counter.allocated({0x1000, 16, 0xbb});
  access(1, 0x1008, 8, AccessKind::store);
  access(2, 0x1008, 8, AccessKind::load);
  access(1, 0x1010, 8, AccessKind::store);
  access(2, 0x1010, 8, AccessKind::load);  // behind the second block
  ASSERT_EQ(counter.blocks().size(), 2U);
  EXPECT_EQ(counter.blocks()[0].caller, 0xaaU);
  EXPECT_EQ(counter.blocks()[1].caller, 0xbbU);
  EXPECT_EQ(data(0x1000, 1, 2, 1).true_sharing, 1U);
  EXPECT_EQ(data(0x1008, 1, 2, 2).true_sharing, 1U);
  EXPECT_EQ(data(0x1010, 1, 2, 0).true_sharing, 1U);
}

TEST_F(Counting, SaysWhenTheLimitIsReached) {
  Counter small(20'000);
  Counter::Cursor cursor;
  bool within = true;
  for (std::uint64_t page = 1; page < 10 && within; ++page) {
    within = small.access({0, 0, page * page_bytes, 8, AccessKind::store}, cursor);
  }
  EXPECT_FALSE(within);
}

}  // namespace
}  // namespace crosstalk::reference::counter_test
