// SPDX-License-Identifier: Apache-2.0
// Opening watches, and the alarms that end brief ones.
#include "collectors/in_target/watch/watch_unit.h"

#include <gtest/gtest.h>

#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/watch_events.h"
#include "tests/in_target/watch_fixture.h"

namespace crosstalk::in_target::test::watch_unit_test {
namespace {

class WatchUnitTest : public WatchFixture {};

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
