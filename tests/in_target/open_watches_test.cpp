// SPDX-License-Identifier: Apache-2.0
// The ends of watches, and their costs.
#include "collectors/in_target/watch/open_watches.h"

#include <gtest/gtest.h>

#include "collectors/in_target/core/armed_time.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "tests/in_target/watch_fixture.h"

namespace crosstalk::in_target::test::open_watches_test {
namespace {

using profile::RecordType;

class OpenWatchesTest : public WatchFixture {};

TEST_F(OpenWatchesTest, ClosesWhenFullAndTellsTheBoard) {
  start(2);
  const std::uint32_t hits = board().publish(word(0), {1, 16, 8, AccessKind::load, 1}).hits;
  ASSERT_TRUE(open(0));
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(access(1 - i % 2, true), 1U) << i;
  }
  EXPECT_FALSE(any_armed());
  const auto closed = of_type<profile::WatchClose>(kernel_.records(*thread_[0]), RecordType::watch_close);
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].reason, profile::CloseReason::full);
  EXPECT_EQ(closed[0].traps, 6U);
  EXPECT_EQ(board().publish(word(0), {1, 16, 8, AccessKind::load, 1}).hits, hits + 1);
  EXPECT_TRUE(kernel_.watch.has_room(*thread_[0], true, 3000));
}

TEST_F(OpenWatchesTest, EndsAfterItsTime) {
  start(2);
  ASSERT_TRUE(open(0));
  const std::uint64_t now_ns = monotonic_ns();
  EXPECT_FALSE(kernel_.watch.expire(*thread_[1], now_ns));
  EXPECT_FALSE(kernel_.watch.has_room(*thread_[0], true, now_ns));
  EXPECT_TRUE(kernel_.watch.expire(*thread_[1], now_ns + horizon_ns));
  EXPECT_FALSE(any_armed());
  const auto closed = of_type<profile::WatchClose>(kernel_.records(*thread_[1]), RecordType::watch_close);
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].reason, profile::CloseReason::horizon);
}

TEST_F(OpenWatchesTest, KnowsForHowLongAThreadWasArmed) {
  start(2);
  ASSERT_TRUE(open(0));
  const std::uint64_t armed_ns = monotonic_ns();
  const profile::ThreadWatchpoints& points = *thread_[1]->watchpoints;
  EXPECT_EQ(armed_times(points, armed_ns + 1000)[0], armed_times(points, armed_ns)[0] + 1000);
  EXPECT_EQ(armed_times(points, armed_ns + 1000)[2], 0U);
  EXPECT_EQ(access(1, true), 1U);
  EXPECT_EQ(access(1, true), 1U);  // its run's first store: then it is off
  kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  const std::uint64_t closed_ns = monotonic_ns();
  const ArmedTimes times = armed_times(points, closed_ns);
  EXPECT_GT(times[0], 0U);
  EXPECT_GE(times[1], times[0]);  // nobody has come to the second word
  EXPECT_EQ(armed_times(points, closed_ns + 1000), times);
}

TEST_F(OpenWatchesTest, TheMeanCostFollowsWhatWatchesCost) {
  start(2);
  ASSERT_TRUE(open(0));
  const std::uint64_t before_ns = kernel_.watch.mean_cost_ns();
  EXPECT_TRUE(kernel_.watch.suspects(0));
  kernel_.watch.charge(0, 100 * before_ns);
  kernel_.watch.charge(99, 100 * before_ns);  // of no slot
  kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  EXPECT_GT(kernel_.watch.mean_cost_ns(), before_ns);
}

TEST_F(OpenWatchesTest, AWatchThatHasEndedMeanwhileIsNotClosedAgain) {
  start(1);
  OpenWatches watches;
  watches.start();
  WatchSlot& slot = watches.slots()[1];
  slot.watch.store(7);
  watches.close_if_open(slot, *thread_[0], 6, profile::CloseReason::full);
  EXPECT_EQ(slot.watch.load(), 7U);
  ASSERT_TRUE(slot.try_lock());
  watches.close_if_open(slot, *thread_[0], 7, profile::CloseReason::full);
  EXPECT_EQ(slot.watch.load(), 7U) << "another thread changes it";
  slot.unlock();
  watches.close_if_open(slot, *thread_[0], 7, profile::CloseReason::full);
  EXPECT_EQ(slot.watch.load(), 0U);
  const auto closed = of_type<profile::WatchClose>(kernel_.records(*thread_[0]), RecordType::watch_close);
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].watch, 7U);
}

}  // namespace
}  // namespace crosstalk::in_target::test::open_watches_test
