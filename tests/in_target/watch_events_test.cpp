// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/watch_events.h"

#include <gtest/gtest.h>

namespace crosstalk::in_target::watch_events_test {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

TEST(WatchEvents, StayOpenWhereSwitchesAreFew) {
  EXPECT_TRUE(worth_keeping(0, second, 0.03, 800, false));
  EXPECT_TRUE(worth_keeping(3750, second, 0.03, 800, false));  // 0.3 % of the time
  EXPECT_FALSE(worth_keeping(3751, second, 0.03, 800, false));
  EXPECT_FALSE(worth_keeping(1, 0, 0.03, 800, false));
}

TEST(WatchEvents, AreNotOpenedAndClosedInTurns) {
  EXPECT_TRUE(worth_keeping(7500, second, 0.03, 800, true));
  EXPECT_FALSE(worth_keeping(7501, second, 0.03, 800, true));
}

TEST(WatchEvents, AreEndedByAnAlarmUnlessThatIsDearAndLate) {
  EXPECT_TRUE(worth_an_alarm(false, 0));
  EXPECT_TRUE(worth_an_alarm(true, 0.25));
  EXPECT_FALSE(worth_an_alarm(true, 0.24));
}

}  // namespace
}  // namespace crosstalk::in_target::watch_events_test
