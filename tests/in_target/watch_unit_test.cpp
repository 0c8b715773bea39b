// SPDX-License-Identifier: Apache-2.0
// The watch unit driven step by step: the armed threads, and its behaviour if the kernel or the program refuses.
#include "collectors/in_target/watch/watch_unit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collectors/in_target/core/armed_time.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/watch_events.h"
#include "tests/in_target/fake_kernel.h"

namespace crosstalk::in_target::test::watch_unit_test {
namespace {

using profile::RecordType;

constexpr std::uint64_t horizon_ns = 20'000'000;

alignas(64) constinit std::uint64_t memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
std::uint64_t word(std::uint32_t number) { return reinterpret_cast<std::uint64_t>(&memory[number]); }

class WatchUnitTest : public testing::Test {
 protected:
  void start(std::uint32_t threads, std::uint32_t registers = 4) {
    kernel_.watch.start(registers, horizon_ns);
    for (std::uint32_t i = 0; i < threads; ++i) {
      thread_.push_back(&kernel_.add_thread());
    }
    for (ThreadState* thread : thread_) {
      kernel_.watch.attend(*thread);
    }
  }
  /// Thread `number` was sampled at word 2 of the line, which is suspected because of thread 1.
  bool open(std::uint32_t number, bool suspected = true, AccessKind kind = AccessKind::load) {
    sample_ = {};
    sample_.time_ns = 1000;
    sample_.address = word(2);
    sample_.width = 8;
    sample_.access = kind;
    sample_.from = profile::AddressFrom::retired;
    WatchRequest request{thread_[number], &sample_, {16, 8, kind, false, false}, {}, suspicion_, suspected};
    return kernel_.watch.open(*thread_[number], request, sample_.time_ns);
  }
  WatchMode mode(std::uint32_t number, std::uint32_t event = 0) { return kernel_.place(*thread_[number], event).mode; }
  std::uint32_t access(std::uint32_t number, bool store, std::uint64_t now_ns = 2000) {
    return kernel_.access(*thread_[number], word(2), store, now_ns);
  }
  bool any_armed() {
    return std::any_of(kernel_.events.begin(), kernel_.events.end(),
                       [](const FakeEvent& event) { return event.open && event.place.mode != WatchMode::off; });
  }

  FakeKernel kernel_;
  std::vector<ThreadState*> thread_;
  watch_policy::Suspicion suspicion_;
  profile::Sample sample_;
};

TEST_F(WatchUnitTest, ArmsTheOthersForAllAndTheSampledThreadForItsFirstStore) {
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
TEST_F(WatchUnitTest, APartnerThatHasEndedIsNotWhoHasItsNumberNow) {
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

TEST_F(WatchUnitTest, OfDeadWatchpointsNothingIsTold) {
  start(2);
  kernel_.dead = true;
  ASSERT_TRUE(open(0));
  EXPECT_EQ(mode(1), WatchMode::read_write);
  EXPECT_EQ(access(1, true), 0U);
  EXPECT_EQ(mode(1), WatchMode::read_write) << "it still waits";
  EXPECT_TRUE(of_type<profile::WatchTrap>(kernel_.records(*thread_[1]), RecordType::watch_trap).empty());
}

TEST_F(WatchUnitTest, FollowsTheRunsOfTheLinesOwners) {
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

TEST_F(WatchUnitTest, ClosesWhenFullAndTellsTheBoard) {
  start(2);
  board().publish(word(0), {1, 16, 8, AccessKind::load, 1});
  ASSERT_TRUE(open(0));
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(access(1 - i % 2, true), 1U) << i;
  }
  EXPECT_FALSE(any_armed());
  const auto closed = of_type<profile::WatchClose>(kernel_.records(*thread_[0]), RecordType::watch_close);
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].reason, profile::CloseReason::full);
  EXPECT_EQ(closed[0].traps, 6U);
  EXPECT_EQ(board().publish(word(0), {1, 16, 8, AccessKind::load, 1}).hits, 1U);
  EXPECT_TRUE(kernel_.watch.has_room(*thread_[0], true, 3000));
}

TEST_F(WatchUnitTest, EndsAfterItsTime) {
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

TEST_F(WatchUnitTest, ANewThreadIsWatchedFromTheNextWatchOn) {
  start(1);
  ASSERT_TRUE(open(0));
  thread_.push_back(&kernel_.add_thread());
  kernel_.watch.attend(*thread_[1]);
  EXPECT_EQ(mode(1), WatchMode::off);
  kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  kernel_.watch.attend(*thread_[1]);  // at its next sample
  ASSERT_TRUE(open(0));
  EXPECT_EQ(mode(1), WatchMode::read_write);
}

TEST_F(WatchUnitTest, NothingIsOpenedWhileTheProgramIsShortOfDescriptors) {
  start(2);
  const std::size_t before = kernel_.events.size();
  kernel_.spare_numbers = false;
  EXPECT_FALSE(open(0));
  EXPECT_FALSE(any_armed());
  EXPECT_EQ(kernel_.events.size(), before);
  kernel_.spare_numbers = true;
  EXPECT_TRUE(open(0));
}

TEST_F(WatchUnitTest, EventsThatAreToHaveOtherNumbersAreOpenedAgain) {
  start(2);
  ASSERT_TRUE(open(0));
  kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  const std::size_t before = kernel_.events.size();
  for (ThreadState* thread : thread_) {
    WatchUnit::renew_events(*thread);
  }
  EXPECT_FALSE(std::any_of(kernel_.events.begin(), kernel_.events.end(), [](const FakeEvent& e) { return e.open; }));
  for (ThreadState* thread : thread_) {
    kernel_.watch.attend(*thread);  // at their next samples
  }
  ASSERT_TRUE(open(0));
  EXPECT_GT(kernel_.events.size(), before);
  EXPECT_EQ(mode(1), WatchMode::read_write);
  EXPECT_EQ(access(1, true), 1U);
}

TEST_F(WatchUnitTest, WhoLeavesIsWatchedNoMore) {
  start(2);
  ASSERT_TRUE(open(0));
  kernel_.watch.leave(*thread_[1]);
  EXPECT_EQ(access(1, true), 0U);
  EXPECT_EQ(access(0, true), 1U);
}

TEST_F(WatchUnitTest, NoRegisterIsFree) {
  kernel_.registers = 0;
  start(2);
  EXPECT_FALSE(kernel_.watch.usable());
  EXPECT_EQ(thread_[0]->watch_events.load(), 0U);
}

// With two registers of four, lines of both kinds are watched in the two available ones.
TEST_F(WatchUnitTest, ADebuggerHoldsTwoRegisters) {
  kernel_.registers = 2;
  start(2);
  for (const bool suspected : {false, true}) {
    ASSERT_TRUE(open(0, suspected)) << suspected;
    EXPECT_EQ(access(1, true), 1U) << suspected;
    kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  }
}

TEST_F(WatchUnitTest, TheProgramClosesOurDescriptors) {
  start(2);
  kernel_.close_descriptors();
  open(0);
  EXPECT_EQ(thread_[0]->watch_events.load(), 0U);
  EXPECT_EQ(thread_[1]->watch_events.load(), 0U);
  EXPECT_EQ(access(1, true), 0U);
}

TEST_F(WatchUnitTest, AStrayTrapIsSwitchedOff) {
  start(2);
  ASSERT_TRUE(open(0));
  const WatchPlace before = kernel_.place(*thread_[1], 0);
  kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  set_watch_event(thread_[1]->watch_event[0], before);  // armed while another thread closed the watch
  EXPECT_EQ(access(1, true), 1U);
  EXPECT_EQ(access(1, true), 0U);
  EXPECT_TRUE(of_type<profile::WatchTrap>(kernel_.records(*thread_[1]), RecordType::watch_trap).empty());
}

TEST_F(WatchUnitTest, WhoseTrapsGoAstrayForEverIsLeftAlone) {
  start(2);
  Registers registers;
  for (int i = 0; i < 256; ++i) {
    EXPECT_FALSE(kernel_.watch.trapped(*thread_[0], 0, word(2), registers, 0, 1000));
  }
  EXPECT_NE(thread_[0]->watch_events.load(), 0U);
  EXPECT_FALSE(kernel_.watch.trapped(*thread_[0], 0, word(2), registers, 0, 1000));
  EXPECT_EQ(thread_[0]->watch_events.load(), 0U);
}

TEST_F(WatchUnitTest, ATrapWithinAHandlerSwitchesItOff) {
  start(2);
  ASSERT_TRUE(open(0));
  kernel_.watch.trapped_in_handler(*thread_[1], 0);
  EXPECT_EQ(mode(1), WatchMode::off);
}

// A thread with events on demand was assumed to have four registers; by now others hold all, or all but one.
TEST_F(WatchUnitTest, WhoCanNotBeArmedIsNotCountedAsArmed) {
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

TEST_F(WatchUnitTest, WhatTheFirstThreadIsRefusedOthersMayHave) {
  kernel_.registers = 2;
  start(2);
  EXPECT_EQ(thread_[0]->watch_events.load(), 2U);
  EXPECT_EQ(kernel_.watch.slots(), 1U);
  kernel_.registers = 4;
  thread_.push_back(&kernel_.add_thread());
  kernel_.watch.attend(*thread_[2]);
  EXPECT_EQ(thread_[2]->watch_events.load(), 4U);
  EXPECT_EQ(kernel_.watch.slots(), 2U);
  // A thread with two registers watches the explored line in its own slot.
  ASSERT_TRUE(open(0, false));
  EXPECT_EQ(access(2, true), 1U);
  EXPECT_FALSE(kernel_.watch.has_room(*thread_[0], false, 2000));
  EXPECT_TRUE(kernel_.watch.has_room(*thread_[2], false, 2000));
  kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  ASSERT_TRUE(open(2, false));  // in the second slot: the others have no registers for it
  const auto opened = of_type<profile::WatchOpen>(kernel_.records(*thread_[2]), RecordType::watch_open);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].armed, 0U);
}

TEST_F(WatchUnitTest, AllRegistersAreHeldOfTheFirstThreadOnly) {
  kernel_.registers = 0;
  start(1);
  EXPECT_FALSE(kernel_.watch.usable());
  kernel_.registers = 4;
  thread_.push_back(&kernel_.add_thread());
  kernel_.watch.attend(*thread_[1]);
  EXPECT_TRUE(kernel_.watch.usable());
  EXPECT_EQ(thread_[1]->watch_events.load(), 4U);
}

TEST_F(WatchUnitTest, KnowsForHowLongAThreadWasArmed) {
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

// Events on demand are opened for a watch and closed with it. Only a real thread gets one, so it is the test's.
TEST_F(WatchUnitTest, OnDemandEventsLiveAsLongAsAWatch) {
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

TEST_F(WatchUnitTest, NoEventIsOpenWhileWatchingRestsButThoseOfAnOpenWatch) {
  start(2);
  ASSERT_TRUE(open(0));
  kernel_.watch.rest();
  EXPECT_EQ(mode(0), WatchMode::write_only);
  EXPECT_EQ(mode(1), WatchMode::read_write);
  kernel_.watch.close_all(*thread_[1], profile::CloseReason::stopped);
  EXPECT_TRUE(
      std::any_of(kernel_.events.begin(), kernel_.events.end(), [](const FakeEvent& event) { return event.open; }));
  kernel_.watch.rest();
  EXPECT_TRUE(
      std::none_of(kernel_.events.begin(), kernel_.events.end(), [](const FakeEvent& event) { return event.open; }));
  // Both can be watched again at once.
  ASSERT_TRUE(open(0));
  EXPECT_EQ(mode(0), WatchMode::write_only);
}

// A thread's trap handler moves an event that another thread dismisses at that moment. The thread is charged for events
// noted as armed, so a closed event must be noted as off in any order.
class DismissedEventTest : public WatchUnitTest {
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

// An alarm that ends a brief watch is a clock, which makes context switches dear while it is set.
TEST_F(WatchUnitTest, AnAlarmThatASampleHasComeBeforeIsEnded) {
  start(2);
  ThreadState& self = *thread_[0];
  set_alarm(self, 500'000);
  EXPECT_EQ(kernel_.alarms_set, 1U);
  const std::uint64_t due_ns = self.alarm_until_ns;
  EXPECT_EQ(alarm_time(self, due_ns), 500'000U);
  end_late_alarm(self, due_ns - 1);
  EXPECT_EQ(alarm_time(self, due_ns + 1000), 501'000U);
  end_late_alarm(self, due_ns);
  const std::uint64_t set_ns = alarm_time(self, due_ns);
  EXPECT_GT(set_ns, 0U);
  EXPECT_EQ(alarm_time(self, due_ns + 1000), set_ns);
}

TEST_F(WatchUnitTest, AThreadThatSwitchesOftenAndIsInTheKernelHasNoAlarm) {
  start(2);
  ThreadState& self = *thread_[0];
  self.keeps_events = false;
  kernel_.watch.attend(self);
  self.in_user = {};
  self.in_user.add(0);
  set_alarm(self, 500'000);
  EXPECT_EQ(kernel_.alarms_set, 0U);
  EXPECT_EQ(alarm_time(self, monotonic_ns() + 1000), 0U);
  self.in_user.add(1);
  set_alarm(self, 500'000);
  EXPECT_EQ(kernel_.alarms_set, 1U);
}

}  // namespace
}  // namespace crosstalk::in_target::test::watch_unit_test
