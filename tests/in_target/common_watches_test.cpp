// SPDX-License-Identifier: Apache-2.0
// Watches that processes keep together, and how another process joins one. A slot outside the unit stands for another
// process's slot of that number.
#include "collectors/in_target/watch/common_watches.h"

#include <gtest/gtest.h>

#include "collectors/in_target/processes/shared_maps.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sys/system_calls.h"
#include "tests/in_target/watch_fixture.h"

namespace crosstalk::in_target::test::common_watches_test {
namespace {

using profile::RecordType;

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint32_t number_elsewhere = 60;  // of another process's thread
constexpr std::uint32_t id = 4711;

class CommonWatches : public WatchFixture {
 protected:
  void SetUp() override {
    line_.device = 1;
    line_.inode = 7;
    line_.known = line_.others = true;
    forget_common();
    kernel_.sharing = true;
  }
  void TearDown() override {
    forget_common();
    shared_maps().remove(word(0), profile::cache_line);
  }

  static void forget_common() {
    for (SharedWatch& common : cross_process_state().watch) {
      common.lock.store(0);
      common.watch.store(0);
    }
  }
  static SharedWatch& common() { return cross_process_state().watch[0]; }

  /// The line is mapped in this process.
  void map() {
    ASSERT_TRUE(shared_maps().add(word(0), profile::cache_line));
    SharedPlace place;
    const SharedMaps::Claim claim = shared_maps().claim(word(0), place);
    ASSERT_TRUE(claim.granted());
    place.device = line_.device;
    place.inode = line_.inode;
    shared_maps().settle(claim, SharedMaps::Outcome::identified, place);
  }
  /// The other process begins a watch of the line's word 2.
  void open_elsewhere() {
    ASSERT_TRUE(claim_common(elsewhere_, line_, monotonic_ns()));
    elsewhere_.choice.words = 1;
    elsewhere_.choice.word[0].offset = 16;
    elsewhere_.choice.word[0].length = 8;
    elsewhere_.suspected.store(true);
    elsewhere_.progress().begin(number_elsewhere, {16, 8, AccessKind::load, false, false}, monotonic_ns() + second);
    elsewhere_.watch.store(id);
    publish_common(elsewhere_);
  }
  void follow_all_threads() {
    for (ThreadState* thread : thread_) {
      kernel_.watch.follow(*thread, monotonic_ns());
    }
  }

  SharedLine line_;
  WatchSlot elsewhere_{0};
};

TEST_F(CommonWatches, OnlyOneProcessBeginsAWatchOfANumber) {
  WatchSlot here(0);
  const std::uint64_t now_ns = monotonic_ns();
  ASSERT_TRUE(claim_common(elsewhere_, line_, now_ns));
  EXPECT_FALSE(claim_common(here, line_, now_ns)) << "the other one is about to publish its own";
  EXPECT_EQ(here.shared, nullptr);
  WatchSlot next(1);
  EXPECT_TRUE(claim_common(next, line_, now_ns));
}

TEST_F(CommonWatches, WhoWasKilledWhileOpeningStandsInNobodysWay) {
  WatchSlot here(0);
  const std::uint64_t now_ns = monotonic_ns();
  ASSERT_TRUE(claim_common(elsewhere_, line_, now_ns));
  EXPECT_FALSE(claim_common(here, line_, now_ns + second));
  EXPECT_TRUE(claim_common(here, line_, now_ns + second + 1));
}

TEST_F(CommonWatches, AWatchThatNobodyEndsIsTakenOverAfterATime) {
  WatchSlot here(0);
  open_elsewhere();
  const std::uint64_t deadline_ns = common().progress.deadline_ns();
  EXPECT_FALSE(claim_common(here, line_, deadline_ns + second - 1));
  EXPECT_TRUE(claim_common(here, line_, deadline_ns + second));
  EXPECT_EQ(common().watch.load(), 0U);
}

TEST_F(CommonWatches, IsEndedByOneProcess) {
  WatchSlot here(0);
  map();
  open_elsewhere();
  ASSERT_TRUE(adopt_common(here, find_common(0, monotonic_ns())));
  EXPECT_FALSE(is_over(here, id));
  EXPECT_TRUE(end_common(here, id));
  EXPECT_FALSE(end_common(elsewhere_, id));
  EXPECT_TRUE(is_over(here, id));
  EXPECT_TRUE(is_over(elsewhere_, id));
}

TEST_F(CommonWatches, IsFoundWhereItsLineIsMapped) {
  open_elsewhere();
  EXPECT_EQ(find_common(0, monotonic_ns()).id, 0U) << "it is not mapped here";
  map();
  const CommonWatch found = find_common(0, monotonic_ns());
  EXPECT_EQ(found.id, id);
  EXPECT_EQ(found.address, word(0));
  EXPECT_EQ(found.line.key(), line_.key());
  EXPECT_EQ(find_common(1, monotonic_ns()).id, 0U);
  EXPECT_EQ(find_common(0, common().progress.deadline_ns()).id, 0U) << "it is about to end";
}

TEST_F(CommonWatches, IsAdoptedAsItIs) {
  WatchSlot here(0);
  map();
  open_elsewhere();
  const CommonWatch found = find_common(0, monotonic_ns());
  ASSERT_TRUE(adopt_common(here, found));
  EXPECT_EQ(here.line, word(0));
  EXPECT_EQ(here.choice.words, 1U);
  EXPECT_EQ(here.choice.word[0].offset, 16);
  EXPECT_TRUE(here.suspected.load());
  EXPECT_EQ(&here.progress(), &common().progress);
  ASSERT_TRUE(end_common(elsewhere_, id));
  EXPECT_FALSE(adopt_common(here, found)) << "it may be a mixture by now";
}

// ---- joining and leaving

TEST_F(CommonWatches, AnotherProcesssWatchIsJoinedAndLeft) {
  map();
  start(2);
  open_elsewhere();
  follow_all_threads();
  EXPECT_EQ(mode(0), WatchMode::read_write);
  EXPECT_EQ(mode(1), WatchMode::read_write);
  EXPECT_EQ(kernel_.place(*thread_[1], 0).address, word(2));
  EXPECT_EQ(access(1, true), 1U);
  const auto traps = of_type<profile::WatchTrap>(kernel_.records(*thread_[1]), RecordType::watch_trap);
  ASSERT_EQ(traps.size(), 1U);
  EXPECT_EQ(traps[0].watch, id);
  EXPECT_EQ(common().progress.runner(), thread_[1]->number);
  ASSERT_TRUE(end_common(elsewhere_, id));
  follow_all_threads();
  EXPECT_FALSE(any_armed());
  EXPECT_TRUE(of_type<profile::WatchClose>(kernel_.records(*thread_[0]), RecordType::watch_close).empty())
      << "who has ended it has recorded that";
}

TEST_F(CommonWatches, AWatchOfALineThatIsNotMappedHereIsNotJoined) {
  start(2);
  open_elsewhere();
  follow_all_threads();
  EXPECT_FALSE(any_armed());
}

TEST_F(CommonWatches, OurOwnWatchMakesRoomForACommonOne) {
  map();
  start(2);
  ASSERT_TRUE(open(0));
  open_elsewhere();
  follow_all_threads();
  const auto closed = of_type<profile::WatchClose>(kernel_.records(*thread_[0]), RecordType::watch_close);
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].reason, profile::CloseReason::stopped);
  EXPECT_EQ(closed[0].watch, sample_.watch);
  EXPECT_EQ(mode(1), WatchMode::read_write);
  EXPECT_EQ(kernel_.place(*thread_[1], 0).address, word(2));
}

}  // namespace
}  // namespace crosstalk::in_target::test::common_watches_test
