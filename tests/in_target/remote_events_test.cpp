// SPDX-License-Identifier: Apache-2.0
// Events on threads of other processes: opening, moving and closing.
#include "collectors/in_target/processes/remote_events.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tests/in_target/fake_kernel.h"

namespace crosstalk::in_target::remote_events_test {
namespace {

constexpr std::uint32_t watch = 7;
constexpr std::int32_t no_process = std::numeric_limits<std::int32_t>::max();
constexpr WatchPlace place{0x4000, 8, WatchMode::read_write};
constexpr WatchPlace other_place{0x4008, 8, WatchMode::write_only};

class RemoteEvents : public ::testing::Test {
 protected:
  RemoteEvents() {
    for (profile::ThreadSlot*& slot : slots_) {
      slot = kernel_.add_thread().slot;
      slot->watchpoints.words.store(max_words);
      slot->watchpoints.stack_low.store(0x8000);
      slot->watchpoints.stack_high.store(0x9000);
    }
  }
  ~RemoteEvents() override {
    for (profile::ThreadSlot* slot : slots_) {
      end_watch(*slot);
    }
  }
  static void end_watch(profile::ThreadSlot& slot) {
    for (std::uint32_t pair = 0; pair < watch_slots; ++pair) {
      slot.watchpoints.watch[pair].store(0);
      release_remote_events(pair);
    }
  }
  static std::uint64_t holder(std::int32_t pid, int fd) {
    return static_cast<std::uint64_t>(pid) << 32U | static_cast<std::uint32_t>(fd);
  }
  profile::ThreadSlot& first() { return *slots_[0]; }
  [[nodiscard]] std::size_t open_events() const {
    std::size_t open = 0;
    for (const test::FakeEvent& event : kernel_.events) {
      open += event.open ? 1 : 0;
    }
    return open;
  }

  test::FakeKernel kernel_;
  profile::ThreadSlot* slots_[2] = {};
};

TEST_F(RemoteEvents, AreOpenedOnceAndThenMoved) {
  EXPECT_GE(arm_remote_thread(first(), 0, watch, place), 0);
  ASSERT_EQ(kernel_.events.size(), 1U);
  EXPECT_EQ(kernel_.events[0].place.address, place.address);
  EXPECT_EQ(first().watchpoints.address[0].load(), place.address);
  EXPECT_EQ(first().watchpoints.watch[0].load(), watch);
  EXPECT_GE(arm_remote_thread(first(), 0, watch, other_place), 0);
  EXPECT_EQ(kernel_.events.size(), 1U);
  EXPECT_EQ(kernel_.events[0].place.address, other_place.address);
  EXPECT_EQ(kernel_.events[0].place.mode, WatchMode::write_only);
}

TEST_F(RemoteEvents, AreClosedOnceNobodyUsesThem) {
  ASSERT_GE(arm_remote_thread(first(), 0, watch, place), 0);
  release_remote_events(0);
  EXPECT_TRUE(kernel_.events[0].open) << "a watch is still using it";
  EXPECT_TRUE(holds_remote_events(0));
  first().watchpoints.watch[0].store(0);
  release_remote_events(0);
  EXPECT_FALSE(kernel_.events[0].open);
  EXPECT_EQ(kernel_.events[0].place.mode, WatchMode::off) << "a forked child's copy would keep it armed";
  EXPECT_FALSE(holds_remote_events(0));
  EXPECT_EQ(first().watchpoints.event[0].holder.load(), 0U);
}

TEST_F(RemoteEvents, AreClosedThoughOthersUseThemWhereTheirNumbersHaveToChange) {
  ASSERT_GE(arm_remote_thread(first(), 0, watch, place), 0);
  ASSERT_GE(arm_remote_thread(first(), 1, watch, other_place), 0);
  forgo_remote_events(0);
  EXPECT_EQ(open_events(), 0U);
  EXPECT_EQ(kernel_.events[0].place.mode, WatchMode::off) << "a forked child's copy would keep it armed";
  EXPECT_FALSE(holds_remote_events(0));
  EXPECT_EQ(first().watchpoints.event[0].holder.load(), 0U);
  EXPECT_EQ(first().watchpoints.mode[0].load(), static_cast<std::uint8_t>(WatchMode::off));
  EXPECT_EQ(set_held_event(first().watchpoints, 0, place), -ESRCH);
  EXPECT_GE(arm_remote_thread(first(), 0, watch, place), 0);  // and opened again when they are needed
  EXPECT_EQ(open_events(), 1U);
}

TEST_F(RemoteEvents, AreNotKeptForAThreadThatTheSlotHadBefore) {
  ASSERT_GE(arm_remote_thread(first(), 0, watch, place), 0);
  first().tid.fetch_add(100);  // another thread has the slot by now, and a watch of its own
  release_remote_events(0);
  EXPECT_FALSE(kernel_.events[0].open);
}

TEST_F(RemoteEvents, AThreadIsNotArmedOnItsStackNorBeyondWhatItCanHave) {
  EXPECT_EQ(arm_remote_thread(first(), 0, watch, {0x8000, 8, WatchMode::read_write}), -ENOSPC);
  first().watchpoints.words.store(2);
  EXPECT_EQ(arm_remote_thread(first(), 2, watch, place), -ENOSPC);
  first().watchpoints.words.store(0);
  EXPECT_EQ(arm_remote_thread(first(), 0, watch, place), -ENOSPC);
  EXPECT_TRUE(kernel_.events.empty());
  EXPECT_EQ(first().watchpoints.mode[0].load(), static_cast<std::uint8_t>(WatchMode::off));
}

TEST_F(RemoteEvents, ARefusedOneLeavesNoTrace) {
  kernel_.registers = 0;
  EXPECT_EQ(arm_remote_thread(first(), 0, watch, place), -ENOSPC);
  EXPECT_EQ(first().watchpoints.mode[0].load(), static_cast<std::uint8_t>(WatchMode::off));
  EXPECT_EQ(first().watchpoints.event[0].holder.load(), 0U);
  EXPECT_FALSE(holds_remote_events(0));
}

TEST_F(RemoteEvents, ADescriptorThatTheProgramHasClosedIsReplaced) {
  ASSERT_GE(arm_remote_thread(first(), 0, watch, place), 0);
  kernel_.close_descriptors();
  ASSERT_GE(arm_remote_thread(first(), 0, watch, other_place), 0);
  ASSERT_EQ(kernel_.events.size(), 2U);
  EXPECT_EQ(kernel_.events[1].place.address, other_place.address);
}

TEST_F(RemoteEvents, WhoWasKilledWhileOpeningStandsInNobodysWay) {
  auto& held_by = first().watchpoints.event[0].holder;
  held_by.store(holder(1, 0));  // of a process that lives
  EXPECT_EQ(set_held_event(first().watchpoints, 0, place), -EBUSY);
  EXPECT_EQ(held_by.load(), holder(1, 0));
  held_by.store(holder(no_process, 0));
  EXPECT_EQ(set_held_event(first().watchpoints, 0, place), -ESRCH);
  EXPECT_EQ(held_by.load(), 0U);
}

TEST_F(RemoteEvents, AHolderThatHasEndedHoldsNothing) {
  auto& held_by = first().watchpoints.event[0].holder;
  held_by.store(holder(no_process, 5));
  EXPECT_TRUE(held_elsewhere(first().watchpoints, 0));
  EXPECT_TRUE(any_held_elsewhere(first().watchpoints));
  EXPECT_GE(arm_remote_thread(first(), 0, watch, place), 0);
  EXPECT_EQ(open_events(), 1U);
  EXPECT_FALSE(any_held_elsewhere(first().watchpoints));
}

TEST_F(RemoteEvents, OnlyOneHasTheRightToOpen) {
  EXPECT_TRUE(claim_event(first().watchpoints, 1));
  EXPECT_FALSE(claim_event(first().watchpoints, 1));
  EXPECT_EQ(arm_remote_thread(first(), 1, watch, place), -EBUSY);
  EXPECT_TRUE(kernel_.events.empty());
  publish_event(first().watchpoints, 1, {});  // it could not be opened
  EXPECT_TRUE(claim_event(first().watchpoints, 1));
}

}  // namespace
}  // namespace crosstalk::in_target::remote_events_test
