// SPDX-License-Identifier: Apache-2.0
// The arena's memory, and the recorder's tables for its slots, grow with what is used.
#include "daemon/arena.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/zeroed.h"
#include "daemon/slot_table.h"

namespace crosstalk::daemon::arena_test {
namespace {

TEST(Arena, KnowsTheSlotsThatWereTouched) {
  const Result<Arena> arena = Arena::create({});
  ASSERT_TRUE(arena) << arena.error().message;
  const std::uint32_t count = arena->slot_count();
  const std::uint64_t bytes = arena->bytes_in_use();
  EXPECT_EQ(arena->touched_slots(0).begin, count);
  EXPECT_EQ(arena->touched_slots(count - 1).begin, count);
  EXPECT_EQ(arena->touched_slots(count).end, count);
  arena->slot(1000).pid.store(7, std::memory_order_relaxed);
  const Arena::Slots touched = arena->touched_slots(0);
  EXPECT_LE(touched.begin, 1000U);
  EXPECT_GT(touched.begin, 980U);  // those of its page
  EXPECT_GT(touched.end, 1000U);
  EXPECT_LT(touched.end, 1020U);
  for (std::uint32_t i = touched.begin; i < touched.end; ++i) {
    EXPECT_EQ(arena->slot(i).state.load(std::memory_order_relaxed), 0U);
  }
  EXPECT_EQ(arena->touched_slots(1000).begin, 1000U);
  EXPECT_EQ(arena->touched_slots(touched.end).begin, count);
  EXPECT_LE(arena->bytes_in_use(), bytes + 8192);  // looking at these takes none
  arena->slot(count - 1).pid.store(7, std::memory_order_relaxed);
  EXPECT_GT(arena->touched_slots(touched.end).begin, count - 20);
  EXPECT_EQ(arena->touched_slots(touched.end).end, count);
}

TEST(SlotTable, GrowsWithItsUse) {
  SlotTable<int> table;
  EXPECT_EQ(std::as_const(table)[4095], 0);
  EXPECT_EQ(table.begin(), table.end());
  int& second = table[1];
  second = 5;
  table[4000] = 7;
  EXPECT_EQ(&table[1], &second);
  EXPECT_EQ(std::as_const(table)[1], 5);
  EXPECT_EQ(table[0], 0);
  EXPECT_EQ(table.end() - table.begin(), 4001);
}

TEST(Zeroed, IsZero) {
  struct Large {
    unsigned char bytes[1U << 20U];
  };
  const auto large = make_zeroed<Large>();
  for (const unsigned char byte : large->bytes) {
    ASSERT_EQ(byte, 0);
  }
}

}  // namespace
}  // namespace crosstalk::daemon::arena_test
