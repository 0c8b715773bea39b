// SPDX-License-Identifier: Apache-2.0
// The threads that a watch arms, and their watchpoints when it is over.
#include "collectors/in_target/watch/arming.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collectors/in_target/core/armed_time.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/watch_policy/selection.h"
#include "tests/in_target/watch_fixture.h"

namespace crosstalk::in_target::test::arming_test {
namespace {

using profile::RecordType;

class ArmingTest : public WatchFixture {};

TEST_F(ArmingTest, ArmsTheOthersForAllAndTheSampledThreadForItsFirstStore) {
  start(3);
  ASSERT_TRUE(open(0));
  EXPECT_EQ(mode(0), WatchMode::write_only);
  EXPECT_EQ(mode(1), WatchMode::read_write);
  EXPECT_EQ(mode(2), WatchMode::read_write);
  EXPECT_EQ(kernel_.place(*thread_[1], 0).address, word(2));
  EXPECT_NE(kernel_.place(*thread_[1], 1).address, word(2));
  const auto opened = of_type<profile::WatchOpen>(kernel_.records(*thread_[0]), RecordType::watch_open);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].threads, 3U);
  EXPECT_EQ(opened[0].armed, 2U);
  EXPECT_EQ(opened[0].watch, sample_.watch);
  EXPECT_NE(sample_.flags & profile::sample_armed, 0);
}

// If there are more threads than can be armed, the board's partner is always armed; a later thread with the same number
// counts as any other.
TEST_F(ArmingTest, APartnerThatHasEndedIsNotWhoHasItsNumberNow) {
  constexpr int times = 40;
  start(watch_policy::most_armed + 6);
  ThreadState& named = *thread_.back();
  suspicion_.other_thread = true;
  suspicion_.partner = {static_cast<std::uint16_t>(named.number), 0, 8, AccessKind::store, 100};
  const auto armed = [&] {
    int count = 0;
    for (int i = 0; i < times; ++i) {
      EXPECT_TRUE(open(0));
      count += kernel_.place(named, 0).mode == WatchMode::read_write ? 1 : 0;
      kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
    }
    return count;
  };
  named.begun_ms = 99;
  EXPECT_EQ(armed(), times);
  named.begun_ms = 101;
  EXPECT_LT(armed(), times);
}

// A thread with events on demand was assumed to have four registers; by now others hold all, or all but one.
TEST_F(ArmingTest, WhoCanNotBeArmedIsNotCountedAsArmed) {
  start(3);
  thread_[0]->keeps_events = false;
  kernel_.watch.attend(*thread_[0]);
  for (const std::uint32_t free : {0U, 1U}) {
    kernel_.registers = free;
    ASSERT_TRUE(open(1)) << free;
    EXPECT_EQ(mode(2), WatchMode::read_write) << free;
    EXPECT_EQ(mode(0), WatchMode::off) << free;
    EXPECT_EQ(mode(0, 1), WatchMode::off) << free;
    const auto opened = of_type<profile::WatchOpen>(kernel_.records(*thread_[1]), RecordType::watch_open);
    ASSERT_EQ(opened.size(), 1U) << free;
    EXPECT_EQ(opened[0].threads, 3U) << free;
    EXPECT_EQ(opened[0].armed, 1U) << free;
    kernel_.watch.close_all(*thread_[1], profile::CloseReason::stopped);
    EXPECT_FALSE(any_armed()) << free;
  }
}

TEST_F(ArmingTest, TheProgramClosesOurDescriptors) {
  start(2);
  kernel_.close_descriptors();
  open(0);
  EXPECT_EQ(thread_[0]->watch_events.load(), 0U);
  EXPECT_EQ(thread_[1]->watch_events.load(), 0U);
  EXPECT_EQ(access(1, true), 0U);
}

// Events on demand are opened for a watch and closed with it. Only a real thread gets one, so it is the test's.
TEST_F(ArmingTest, OnDemandEventsLiveAsLongAsAWatch) {
  start(2);
  thread_[0]->keeps_events = false;
  kernel_.watch.attend(*thread_[0]);
  EXPECT_EQ(thread_[0]->watch_event[0].fd, 0);
  ASSERT_TRUE(open(1));
  EXPECT_EQ(mode(0), WatchMode::read_write);
  EXPECT_EQ(access(0, true), 1U);
  kernel_.watch.close_all(*thread_[1], profile::CloseReason::stopped);
  EXPECT_EQ(thread_[0]->watch_event[0].fd, 0);
  EXPECT_FALSE(any_armed());
}

TEST_F(ArmingTest, AThreadIsKnownByItsNumberWhileItLives) {
  start(2);
  EXPECT_EQ(thread_of(thread_[1]->number), thread_[1]);
  EXPECT_EQ(thread_of(0), nullptr);
  EXPECT_EQ(thread_of(runtime().slot_count + 1), nullptr);
  thread_[1]->slot->pid.store(runtime().pid + 1);
  EXPECT_EQ(thread_of(thread_[1]->number), nullptr) << "another process's";
}

TEST_F(ArmingTest, WhoIsNotArmedForAWordIsArmedAgain) {
  start(2);
  ASSERT_TRUE(open(0));
  WatchSlot slot(0);  // as the unit's own
  slot.line = word(0);
  slot.watch.store(sample_.watch);
  slot.choice.words = 1;
  slot.choice.word[0].offset = 16;
  slot.choice.word[0].length = 8;
  ASSERT_EQ(mode(0), WatchMode::write_only);
  arm_unarmed(slot, *thread_[0]);
  EXPECT_EQ(mode(0), WatchMode::read_write);
  set_mode(slot, *thread_[0], 0, WatchMode::off);
  restore_thread(slot, *thread_[0]);
  EXPECT_EQ(mode(0), WatchMode::read_write);
}

TEST_F(ArmingTest, NothingIsArmedOnAThreadsOwnStack) {
  start(2);
  thread_[1]->stack_low = word(0);
  thread_[1]->stack_high = word(0) + 64;
  ASSERT_TRUE(open(0));
  EXPECT_EQ(mode(1), WatchMode::off);
}

// A thread's trap handler moves an event that another thread dismisses at that moment. The thread is charged for events
// noted as armed, so a closed event must be noted as off in any order.
class DismissedEventTest : public ArmingTest {
 protected:
  void open_on_demand() {
    start(2);
    thread_[0]->keeps_events = false;
    kernel_.watch.attend(*thread_[0]);
    ASSERT_TRUE(open(1));
    ASSERT_EQ(mode(0), WatchMode::read_write);
  }
  long move() { return set_event(*thread_[0], 0, {word(2), 8, WatchMode::write_only}); }
  void expect_noted_as_off() {
    const profile::ThreadWatchpoints& points = *thread_[0]->watchpoints;
    const std::uint64_t now_ns = monotonic_ns();
    EXPECT_EQ(armed_times(points, now_ns + 1000), armed_times(points, now_ns));
    EXPECT_EQ(points.mode[0].load(), static_cast<std::uint8_t>(WatchMode::off));
    EXPECT_FALSE(any_armed());
  }
};

TEST_F(DismissedEventTest, IsNotedAsOffIfItsThreadMovesItTooLate) {
  open_on_demand();
  kernel_.watch.close_all(*thread_[1], profile::CloseReason::stopped);
  EXPECT_LT(move(), 0);
  expect_noted_as_off();
}

TEST_F(DismissedEventTest, IsNotedAsOffIfItsThreadMovesItBetweenDisablingAndClosing) {
  open_on_demand();
  long moved = -1;
  kernel_.after_set = [&] { moved = move(); };
  kernel_.watch.close_all(*thread_[1], profile::CloseReason::stopped);
  EXPECT_EQ(moved, 0);
  expect_noted_as_off();
}

}  // namespace
}  // namespace crosstalk::in_target::test::arming_test
