// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/board.h"

#include <gtest/gtest.h>

#include <memory>

#include "profile/arena.h"

namespace crosstalk::watch_policy::board_test {
namespace {

constexpr std::uint64_t base = 0x7f0000000000;

Publication load_by(std::uint16_t thread, std::uint32_t time_ms = 1) {
  return {thread, 8, 8, AccessKind::load, time_ms};
}

std::uint64_t line(std::uint32_t n) { return base + std::uint64_t{n} * 64; }

/// Returns how many of `lines` lines that thread 1 published the board still knows when thread 2 comes to them, the
/// latest first: its own entries displace only older lines.
std::uint32_t remembered(Board& board, std::uint32_t lines) {
  for (std::uint32_t n = 0; n < lines; ++n) {
    board.publish(line(n), load_by(1));
  }
  std::uint32_t known = 0;
  for (std::uint32_t n = lines; n-- > 0;) {
    known += board.publish(line(n), load_by(2)).other_thread ? 1 : 0;
  }
  return known;
}

class Boards : public testing::Test {
 protected:
  std::unique_ptr<Board> board_ = std::make_unique<Board>();
};

TEST_F(Boards, ALineIsKnownFromTheOtherThreadOnly) {
  EXPECT_FALSE(board_->publish(base, load_by(1)).other_thread);
  EXPECT_FALSE(board_->publish(base, load_by(1)).other_thread);
  const Suspicion known = board_->publish(base, {2, 16, 4, AccessKind::store, 7});
  EXPECT_TRUE(known.other_thread);
  EXPECT_TRUE(known.store_seen);
  EXPECT_EQ(known.partner.thread, 1);
  EXPECT_EQ(known.partner.offset, 8);
}

// Numbers of threads that have ended are given to others.
TEST_F(Boards, AThreadInheritsNothingOfOneThatHadItsNumber) {
  constexpr std::uint32_t begun_ms = 100;
  board_->publish(base, {1, 8, 8, AccessKind::store, begun_ms - 1});
  const Suspicion known = board_->publish(base, {1, 16, 4, AccessKind::load, begun_ms + 5}, begun_ms);
  EXPECT_TRUE(known.other_thread);
  EXPECT_EQ(known.partner.offset, 8);
  EXPECT_EQ(known.partner.time_ms, begun_ms - 1);
  const Suspicion again = board_->publish(base, {1, 16, 4, AccessKind::load, begun_ms + 6}, begun_ms);
  EXPECT_TRUE(again.other_thread) << "the one before is still known";
  EXPECT_EQ(again.partner.offset, 8);
  const Suspicion by_other = board_->publish(base, {2, 32, 4, AccessKind::load, begun_ms + 7});
  EXPECT_EQ(by_other.partner.offset, 16);
  EXPECT_EQ(by_other.partner.kind, AccessKind::load) << "the store was not its own";
}

TEST_F(Boards, AThreadsOwnPublicationsAreItsOwnAlsoWhereTimeWrapsAround) {
  board_->publish(base, load_by(1, UINT32_MAX), UINT32_MAX - 10);
  EXPECT_FALSE(board_->publish(base, load_by(1, 3), UINT32_MAX - 10).other_thread);
  EXPECT_TRUE(board_->publish(base, load_by(1, 5), 4).other_thread);
}

TEST_F(Boards, JudgementsStayWithTheirLine) {
  board_->publish(base, load_by(1));
  board_->judged(base, false);
  board_->judged(base, false);
  board_->judged(line(1), false);
  EXPECT_EQ(board_->publish(base, load_by(2)).duds, 2U);
  board_->judged(base, true);
  const Suspicion known = board_->publish(base, load_by(1));
  EXPECT_EQ(known.duds, 0U);
  EXPECT_EQ(known.hits, 1U);
}

TEST_F(Boards, FewSlotsRememberFewLines) {
  for (const std::uint32_t slots : {16U, 256U, 4096U, 16384U}) {
    board_ = std::make_unique<Board>();
    board_->start(slots);
    const std::uint32_t known = remembered(*board_, 8 * slots);
    EXPECT_LE(known, slots) << slots;
    EXPECT_GT(known, slots / 2) << slots;
  }
}

TEST_F(Boards, TheDefaultIsTheSettings) {
  const std::uint32_t before = remembered(*board_, 20000);
  board_ = std::make_unique<Board>();
  board_->start(profile::SessionConfig{}.board_slots);
  EXPECT_EQ(remembered(*board_, 20000), before);
}

TEST_F(Boards, NonsenseIsIgnored) {
  const std::uint32_t before = remembered(*board_, 20000);
  for (const std::uint32_t slots : {0U, 1U, 8U, 1000U, 32768U, 0x80000000U, 0xffffffffU}) {
    board_ = std::make_unique<Board>();
    board_->start(slots);
    EXPECT_EQ(remembered(*board_, 20000), before) << slots;
  }
}

}  // namespace
}  // namespace crosstalk::watch_policy::board_test
