// SPDX-License-Identifier: Apache-2.0
// Rows that collectors tell once, kept for later files.
#include "daemon/told_once.h"

#include <gtest/gtest.h>

#include "tests/daemon/collected_rows.h"

namespace crosstalk::daemon::told_once_test {
namespace {

constexpr auto all_live = [](auto) { return true; };

profile::BlockRow block(std::uint32_t process, std::uint64_t begin, std::uint64_t bytes, std::uint64_t time_ns = 0) {
  profile::BlockRow row;
  row.process = ProcessId{process};
  row.begin = begin, row.bytes = bytes, row.time_ns = time_ns;
  return row;
}

void keep_creation(ToldOnce& told, std::uint32_t thread, std::uint64_t frame, std::uint32_t stack) {
  profile::ThreadCreationRow row;
  row.thread = ThreadId{thread};
  row.stack = StackId{stack};
  profile::StackRow of;
  of.id = row.stack;
  of.registers[Register::rsp] = frame;
  told.keep(row, of);
}

std::vector<std::uint64_t> begins(const CollectedRows& rows) {
  std::vector<std::uint64_t> begins;
  for (const profile::BlockRow& row : rows.blocks) {
    begins.push_back(row.begin);
  }
  return begins;
}

TEST(ToldOnce, ABlockTakesThePlaceOfThoseBeforeIt) {
  ToldOnce told;
  for (const auto& [begin, bytes] : {std::pair{0x1000U, 16U}, {0x1010U, 16U}, {0x1020U, 16U}, {0x1008U, 16U}}) {
    told.keep(block(0, begin, bytes));
  }
  CollectedRows rows;
  told.put_everything(rows, all_live);
  EXPECT_EQ(begins(rows), (std::vector<std::uint64_t>{0x1008, 0x1020}));
}

TEST(ToldOnce, TheLatestBlocksStay) {
  ToldOnce told;
  for (std::uint64_t i = 0; i < 3 * ToldOnce::most_blocks; ++i) {
    told.keep(block(0, 0x1000 + 32 * (i * 7919 % 100'003), 16, i));
  }
  CollectedRows rows;
  told.put_everything(rows, all_live);
  EXPECT_LE(rows.blocks.size(), ToldOnce::most_blocks);
  EXPECT_GE(rows.blocks.size(), ToldOnce::most_blocks / 2);
  for (const profile::BlockRow& row : rows.blocks) {
    EXPECT_GE(row.time_ns, 2 * ToldOnce::most_blocks - ToldOnce::most_blocks / 2);
  }
}

TEST(ToldOnce, OnlyTheLivingHaveRows) {
  ToldOnce told;
  told.keep(block(0, 0x1000, 16));
  told.keep(block(1, 0x2000, 16));
  told.keep(ProcessId{1}, {"a_code", "a text", 1});
  told.keep(ProcessId{1}, {"a_code", "a text", 1});
  keep_creation(told, 4, 0x70, 1);
  keep_creation(told, 5, 0x70, 2);
  keep_creation(told, 5, 0x70, 3);
  CollectedRows rows;
  told.put_everything(rows, [](auto id) { return id.value == 1 || id.value == 5; });
  EXPECT_EQ(begins(rows), std::vector<std::uint64_t>{0x2000});
  ASSERT_EQ(rows.messages.size(), 1U);
  EXPECT_EQ(rows.messages[0].count, 1U);
  ASSERT_EQ(rows.thread_creations.size(), 1U);
  EXPECT_EQ(rows.thread_creations[0].stack, StackId{3}) << "the latest of a frame";
  ASSERT_EQ(rows.stacks.size(), 1U);
  EXPECT_EQ(rows.stacks[0].id, StackId{3});
  told.forget(ProcessId{1});
  CollectedRows after;
  told.put_everything(after, all_live);
  EXPECT_EQ(begins(after), std::vector<std::uint64_t>{0x1000});
  EXPECT_TRUE(after.messages.empty());
  EXPECT_EQ(after.thread_creations.size(), 1U) << "the other one was forgotten";
}

TEST(ToldOnce, CreationsAndMessagesAreLimited) {
  ToldOnce told;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    keep_creation(told, 1, i, i + 1);
    told.keep(ProcessId{0}, {"a_code", std::to_string(i), 1});
  }
  CollectedRows rows;
  told.put_everything(rows, all_live);
  ASSERT_EQ(rows.thread_creations.size(), ToldOnce::most_creations);
  EXPECT_EQ(rows.thread_creations.back().stack, StackId{1000});
  EXPECT_EQ(rows.messages.size(), ToldOnce::most_messages);
}

}  // namespace
}  // namespace crosstalk::daemon::told_once_test
