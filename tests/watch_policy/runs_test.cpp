// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/runs.h"

#include <gtest/gtest.h>

namespace crosstalk::watch_policy::runs_test {
namespace {

constexpr std::uint64_t deadline = 1'000'000;

SampledAccess access_of(AccessKind kind, bool yet_to_come = false) { return {0, 8, kind, yet_to_come, false}; }

/// A trap of thread `number`.
Turn trap(WatchProgress& progress, std::uint32_t number, std::uint64_t now_ns = 1000) {
  return progress.advance(number, progress.count_trap(), now_ns);
}

WatchProgress& begun(WatchProgress& progress, AccessKind kind = AccessKind::load, bool yet_to_come = false) {
  progress.begin(1, access_of(kind, yet_to_come), deadline);
  return progress;
}

TEST(Modes, OfTheSampledThreadAreWhatIsNotKnownOfItsRun) {
  EXPECT_EQ(first_mode(access_of(AccessKind::load), 0), WatchMode::write_only);
  EXPECT_EQ(first_mode(access_of(AccessKind::store), 0), WatchMode::off);
  EXPECT_EQ(first_mode(access_of(AccessKind::load_store), 0), WatchMode::off);
  EXPECT_EQ(first_mode(access_of(AccessKind::store, true), 0), WatchMode::read_write);
  EXPECT_EQ(first_mode(access_of(AccessKind::store), 1), WatchMode::write_only);
}

TEST(Modes, FollowARunToItsFirstStore) {
  EXPECT_EQ(mode_after_trap(WatchMode::read_write), WatchMode::write_only);
  EXPECT_EQ(mode_after_trap(WatchMode::write_only), WatchMode::off);
}

TEST(WatchProgress, RearmsWhoHasLostTheLine) {
  WatchProgress progress;
  begun(progress);
  EXPECT_EQ(trap(progress, 2).rearm, 1U);
  EXPECT_EQ(trap(progress, 2).rearm, 0U);  // its run goes on
  EXPECT_EQ(progress.runner(), 2U);
  EXPECT_EQ(trap(progress, 3).rearm, 2U);
  EXPECT_EQ(trap(progress, 1).rearm, 3U);
  EXPECT_EQ(progress.traps(), 4U);
}

TEST(WatchProgress, EndsAfterSixRuns) {
  WatchProgress progress;
  begun(progress);
  for (std::uint32_t run = 1; run <= 5; ++run) {
    EXPECT_FALSE(trap(progress, run % 2 + 1).close) << run;
  }
  const Turn last = trap(progress, 1);
  EXPECT_EQ(last.close, profile::CloseReason::full);
  EXPECT_EQ(last.rearm, 0U);
}

TEST(WatchProgress, EndsAfterSixteenTraps) {
  WatchProgress progress;
  begun(progress);
  for (std::uint32_t i = 0; i < 15; ++i) {
    EXPECT_FALSE(trap(progress, 2).close) << i;
  }
  EXPECT_EQ(trap(progress, 2).close, profile::CloseReason::full);
}

TEST(WatchProgress, EndsAtTheFirstTrapAfterItsTime) {
  WatchProgress progress;
  begun(progress);
  EXPECT_FALSE(trap(progress, 1, deadline - 1).close);
  EXPECT_FALSE(progress.expired(deadline - 1));
  EXPECT_TRUE(progress.expired(deadline));
  EXPECT_EQ(trap(progress, 1, deadline).close, profile::CloseReason::horizon);
}

TEST(WatchProgress, IsProlongedWhenTheLineIsTakenFirst) {
  WatchProgress progress;
  begun(progress);
  EXPECT_FALSE(trap(progress, 2, deadline - 10).close);
  EXPECT_EQ(progress.deadline_ns(), deadline - 10 + profile::verdict_ns);
  EXPECT_FALSE(trap(progress, 1, deadline + 10).close);
  EXPECT_EQ(progress.deadline_ns(), deadline - 10 + profile::verdict_ns);  // not by later ones
}

TEST(WatchProgress, IsNotShortenedByAnEarlyTrap) {
  WatchProgress progress;
  begun(progress);
  trap(progress, 2, 10);
  EXPECT_EQ(progress.deadline_ns(), deadline);
}

TEST(WatchProgress, AnExchangeNeedsAStoreAndAnotherThread) {
  WatchProgress readers;
  begun(readers);
  trap(readers, 2);
  EXPECT_FALSE(readers.exchanged());
  readers.saw_store();
  EXPECT_TRUE(readers.exchanged());

  WatchProgress alone;
  begun(alone, AccessKind::store);
  trap(alone, 1);
  EXPECT_FALSE(alone.exchanged());

  WatchProgress taken;
  trap(begun(taken, AccessKind::store), 2);
  EXPECT_TRUE(taken.exchanged());

  WatchProgress not_yet;  // the store that was foreseen has not happened
  trap(begun(not_yet, AccessKind::store, true), 2);
  EXPECT_FALSE(not_yet.exchanged());
}

TEST(WatchProgress, BeginsAfresh) {
  WatchProgress progress;
  begun(progress, AccessKind::store);
  trap(progress, 2);
  begun(progress);
  EXPECT_EQ(progress.traps(), 0U);
  EXPECT_EQ(progress.runner(), 1U);
  EXPECT_FALSE(progress.exchanged());
}

}  // namespace
}  // namespace crosstalk::watch_policy::runs_test
