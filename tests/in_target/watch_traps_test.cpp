// SPDX-License-Identifier: Apache-2.0
// The accesses of threads that have a watched line: which of them trap, and what follows.
#include "collectors/in_target/watch/watch_traps.h"

#include <gtest/gtest.h>

#include "tests/in_target/watch_fixture.h"

namespace crosstalk::in_target::test::watch_traps_test {
namespace {

using profile::RecordType;

class WatchTrapsTest : public WatchFixture {};

TEST_F(WatchTrapsTest, FollowsTheRunsOfTheLinesOwners) {
  start(2);
  ASSERT_TRUE(open(0));
  EXPECT_EQ(access(0, false), 0U);
  EXPECT_EQ(access(1, false), 1U);
  EXPECT_EQ(mode(1), WatchMode::write_only);
  EXPECT_EQ(mode(0), WatchMode::read_write);  // it has lost the line
  EXPECT_EQ(access(1, false), 0U);
  EXPECT_EQ(access(1, true), 1U);
  EXPECT_EQ(mode(1), WatchMode::off);
  EXPECT_EQ(access(1, true), 0U);
  EXPECT_EQ(access(0, true), 1U);
  EXPECT_EQ(mode(1), WatchMode::read_write);
  const auto traps = of_type<profile::WatchTrap>(kernel_.records(*thread_[1]), RecordType::watch_trap);
  ASSERT_EQ(traps.size(), 2U);
  EXPECT_EQ(traps[0].sequence, 0U);
  EXPECT_EQ(traps[0].write_only, 0);
  EXPECT_EQ(traps[1].sequence, 1U);
  EXPECT_EQ(traps[1].write_only, 1);
  EXPECT_EQ(traps[1].has_state, 1);
}

TEST_F(WatchTrapsTest, OfDeadWatchpointsNothingIsTold) {
  start(2);
  kernel_.dead = true;
  ASSERT_TRUE(open(0));
  EXPECT_EQ(mode(1), WatchMode::read_write);
  EXPECT_EQ(access(1, true), 0U);
  EXPECT_EQ(mode(1), WatchMode::read_write) << "it still waits";
  EXPECT_TRUE(of_type<profile::WatchTrap>(kernel_.records(*thread_[1]), RecordType::watch_trap).empty());
}

TEST_F(WatchTrapsTest, AStrayTrapIsSwitchedOff) {
  start(2);
  ASSERT_TRUE(open(0));
  const WatchPlace before = kernel_.place(*thread_[1], 0);
  kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  set_watch_event(thread_[1]->watch_event[0], before);  // armed while another thread closed the watch
  EXPECT_EQ(access(1, true), 1U);
  EXPECT_EQ(access(1, true), 0U);
  EXPECT_TRUE(of_type<profile::WatchTrap>(kernel_.records(*thread_[1]), RecordType::watch_trap).empty());
}

TEST_F(WatchTrapsTest, WhoseTrapsGoAstrayForEverIsLeftAlone) {
  start(2);
  Registers registers;
  for (int i = 0; i < 256; ++i) {
    EXPECT_FALSE(kernel_.watch.trapped(*thread_[0], {0, word(2), registers, 0, 1000}));
  }
  EXPECT_NE(thread_[0]->watch_events.load(), 0U);
  EXPECT_FALSE(kernel_.watch.trapped(*thread_[0], {0, word(2), registers, 0, 1000}));
  EXPECT_EQ(thread_[0]->watch_events.load(), 0U);
}

TEST_F(WatchTrapsTest, ATrapWithinAHandlerSwitchesItOff) {
  start(2);
  ASSERT_TRUE(open(0));
  take_trap_in_handler(*thread_[1], 0);
  EXPECT_EQ(mode(1), WatchMode::off);
}

}  // namespace
}  // namespace crosstalk::in_target::test::watch_traps_test
