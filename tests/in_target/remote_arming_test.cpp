// SPDX-License-Identifier: Apache-2.0
// Threads of other processes that a watch arms, by their slots in the arena.
#include "collectors/in_target/watch/remote_arming.h"

#include <gtest/gtest.h>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/watch/admission.h"
#include "tests/in_target/watch_fixture.h"

namespace crosstalk::in_target::test::remote_arming_test {
namespace {

constexpr std::uint64_t line_elsewhere = 0x7000'0000;
constexpr std::uint32_t id = 4711;

class RemoteArming : public WatchFixture {
 protected:
  void SetUp() override {
    start(3);
    for (ThreadState* thread : thread_) {
      thread->slot->state.store(static_cast<std::uint32_t>(profile::SlotState::live));
      end_watching(*thread);  // this process holds none of its events
    }
    kernel_.uses = {{runtime().pid + 1, line_elsewhere}};
    slot_.line = word(0);
    slot_.watch.store(id);
    slot_.choice.words = 1;
    slot_.choice.word[0].offset = 16;
    slot_.choice.word[0].length = 8;
  }
  void TearDown() override {
    for (std::uint32_t pair = 0; pair < watch_slots; ++pair) {
      forgo_remote_events(pair);
    }
  }

  /// A thread becomes another process's, which has the line mapped, too.
  profile::ThreadSlot& move_away(std::uint32_t index) {
    profile::ThreadSlot& slot = *thread_[index]->slot;
    slot.pid.store(runtime().pid + 1);
    slot.watchpoints.words.store(max_words);
    return slot;
  }
  static WatchMode noted_mode(const profile::ThreadSlot& slot) {
    return static_cast<WatchMode>(slot.watchpoints.mode[0].load());
  }

  WatchSlot slot_{0};  // of the watch
};

TEST_F(RemoteArming, ThreadsOfProcessesThatHaveTheLineAreArmedAndDisarmed) {
  profile::ThreadSlot& first = move_away(1);
  profile::ThreadSlot& second = move_away(2);
  const ArmedThreads threads = arm_elsewhere(slot_, *thread_[0], 0);
  EXPECT_EQ(threads.others, 2U);
  EXPECT_EQ(threads.armed, 2U);
  EXPECT_EQ(noted_mode(first), WatchMode::read_write);
  EXPECT_EQ(first.watchpoints.address[0].load(), line_elsewhere + 16);
  EXPECT_EQ(second.watchpoints.watch[0].load(), id);
  EXPECT_EQ(noted_mode(*thread_[0]->slot), WatchMode::off);
  disarm_elsewhere(slot_, id + 1);
  EXPECT_EQ(noted_mode(first), WatchMode::read_write) << "it is armed for another watch";
  disarm_elsewhere(slot_, id);
  EXPECT_EQ(noted_mode(first), WatchMode::off);
  EXPECT_EQ(noted_mode(second), WatchMode::off);
  EXPECT_EQ(second.watchpoints.watch[0].load(), 0U);
}

TEST_F(RemoteArming, AThreadThatCanNotBeArmedIsLeftToItsOwnProcess) {
  const profile::ThreadSlot& slot = move_away(1);
  kernel_.registers = 0;
  const ArmedThreads threads = arm_elsewhere(slot_, *thread_[0], thread_[1]->number);
  EXPECT_EQ(threads.others, 1U);
  EXPECT_EQ(threads.armed, 0U);
  EXPECT_EQ(slot.watchpoints.watch[0].load(), 0U);
}

TEST_F(RemoteArming, TheNextAccessOfAThreadThatHasLostTheLineIsOfInterest) {
  profile::ThreadSlot& slot = move_away(1);
  ASSERT_EQ(arm_elsewhere(slot_, *thread_[0], 0).armed, 1U);
  ASSERT_GE(set_held_event(slot.watchpoints, 0, {line_elsewhere + 16, 8, WatchMode::write_only}), 0);
  restore_elsewhere(slot_, 0);
  restore_elsewhere(slot_, thread_[2]->number);  // it is not armed
  EXPECT_EQ(noted_mode(slot), WatchMode::write_only);
  EXPECT_EQ(noted_mode(*thread_[2]->slot), WatchMode::off);
  restore_elsewhere(slot_, thread_[1]->number);
  EXPECT_EQ(noted_mode(slot), WatchMode::read_write);
}

TEST_F(RemoteArming, EventsAreClosedWhereTheirNumbersHaveToChange) {
  move_away(1);
  ASSERT_EQ(arm_elsewhere(slot_, *thread_[0], 0).armed, 1U);
  ASSERT_TRUE(any_armed());
  WatchSlot slots[] = {WatchSlot(0), WatchSlot(1)};
  renew_events_elsewhere(slots);
  EXPECT_FALSE(any_armed());
  EXPECT_FALSE(holds_remote_events(0));
}

}  // namespace
}  // namespace crosstalk::in_target::test::remote_arming_test
