// SPDX-License-Identifier: Apache-2.0
// The threads that can be armed, also if the kernel or the program refuses some, and the events that stay open.
#include "collectors/in_target/watch/admission.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/in_target/watch_fixture.h"

namespace crosstalk::in_target::test::admission_test {
namespace {

class AdmissionTest : public WatchFixture {};

TEST_F(AdmissionTest, NoRegisterIsFree) {
  kernel_.registers = 0;
  start(2);
  EXPECT_FALSE(kernel_.watch.usable());
  EXPECT_EQ(thread_[0]->watch_events.load(), 0U);
}

// With two registers of four, lines of both kinds are watched in the two available ones.
TEST_F(AdmissionTest, ADebuggerHoldsTwoRegisters) {
  kernel_.registers = 2;
  start(2);
  for (const bool suspected : {false, true}) {
    ASSERT_TRUE(open(0, suspected)) << suspected;
    EXPECT_EQ(access(1, true), 1U) << suspected;
    kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  }
}

TEST_F(AdmissionTest, WhatTheFirstThreadIsRefusedOthersMayHave) {
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
  const auto opened = of_type<profile::WatchOpen>(kernel_.records(*thread_[2]), profile::RecordType::watch_open);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].armed, 0U);
}

TEST_F(AdmissionTest, AllRegistersAreHeldOfTheFirstThreadOnly) {
  kernel_.registers = 0;
  start(1);
  EXPECT_FALSE(kernel_.watch.usable());
  kernel_.registers = 4;
  thread_.push_back(&kernel_.add_thread());
  kernel_.watch.attend(*thread_[1]);
  EXPECT_TRUE(kernel_.watch.usable());
  EXPECT_EQ(thread_[1]->watch_events.load(), 4U);
}

TEST_F(AdmissionTest, ANewThreadIsWatchedFromTheNextWatchOn) {
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

TEST_F(AdmissionTest, WhoLeavesIsWatchedNoMore) {
  start(2);
  ASSERT_TRUE(open(0));
  end_watching(*thread_[1]);
  EXPECT_EQ(access(1, true), 0U);
  EXPECT_EQ(access(0, true), 1U);
}

TEST_F(AdmissionTest, EventsThatAreToHaveOtherNumbersAreOpenedAgain) {
  start(2);
  ASSERT_TRUE(open(0));
  kernel_.watch.close_all(*thread_[0], profile::CloseReason::stopped);
  const std::size_t before = kernel_.events.size();
  for (ThreadState* thread : thread_) {
    renew_events(*thread);
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

TEST_F(AdmissionTest, NoEventIsOpenWhileWatchingRestsButThoseOfAnOpenWatch) {
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

TEST_F(AdmissionTest, AThreadThatMayEndSoonIsReadyAtOnceIfAnotherOneHasGotAll) {
  start(1);
  thread_.push_back(&kernel_.add_thread());
  kernel_.watch.expect(*thread_[1]);
  EXPECT_EQ(thread_[1]->watch_events.load(), 4U);
  EXPECT_EQ(thread_[1]->watch_event[0].fd, 0) << "its events are opened for a watch";
  Admission fresh;
  fresh.start(4);
  thread_.push_back(&kernel_.add_thread());
  fresh.expect(*thread_[2]);
  EXPECT_FALSE(thread_[2]->watch_tried) << "what the kernel grants is not known";
}

TEST_F(AdmissionTest, WithdrawnThreadsCanNotBeArmedByOthersUntilTheyAreReadmitted) {
  start(2);
  withdraw_threads();
  EXPECT_EQ(thread_[0]->watchpoints->words.load(), 0U);
  EXPECT_EQ(thread_[1]->watchpoints->words.load(), 0U);
  end_watching(*thread_[1]);
  readmit_threads();
  EXPECT_EQ(thread_[0]->watchpoints->words.load(), 4U);
  EXPECT_EQ(thread_[1]->watchpoints->words.load(), 0U) << "it is watched no more";
}

TEST_F(AdmissionTest, EventsOpenDuringWatchesOnlyAreKnown) {
  start(2);
  EXPECT_FALSE(has_closed_events());
  thread_[1]->keeps_events = false;
  kernel_.watch.attend(*thread_[1]);
  EXPECT_TRUE(has_closed_events());
  end_watching(*thread_[1]);
  EXPECT_FALSE(has_closed_events());
}

}  // namespace
}  // namespace crosstalk::in_target::test::admission_test
