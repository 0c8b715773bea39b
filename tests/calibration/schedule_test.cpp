// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/schedule.h"

#include <gtest/gtest.h>

namespace crosstalk::collectors::calibration::schedule_test {
namespace {

TEST(Schedule, EveryFigureHasAnEqualPartOfWhatIsLeft) {
  Schedule schedule({10, 1, 2}, 1000, 4);
  EXPECT_EQ(schedule.next(0).deadline_ns, 250U);
  EXPECT_EQ(schedule.next(250).deadline_ns, 500U);
  EXPECT_EQ(schedule.next(0).try_ns, 10U);
}

TEST(Schedule, WhatAFigureDoesNotNeedIsTheLaterOnes) {
  Schedule schedule({}, 1000, 4);
  static_cast<void>(schedule.next(0));
  EXPECT_EQ(schedule.next(10).deadline_ns, 10 + 330U);
  schedule.skip();
  EXPECT_EQ(schedule.next(20).deadline_ns, 1000U);
}

TEST(Schedule, NoTimeIsLeftAfterTheEnd) {
  Schedule schedule({}, 1000, 4);
  EXPECT_EQ(schedule.next(1500).deadline_ns, 1500U);
  EXPECT_EQ(schedule.preparation_deadline_ns(1500), 1500U);
}

TEST(Schedule, MoreFiguresThanWereExpectedHaveWhatIsLeft) {
  Schedule schedule({}, 1000, 1);
  static_cast<void>(schedule.next(0));
  EXPECT_EQ(schedule.next(400).deadline_ns, 1000U);
}

TEST(Schedule, PreparationsLeaveTimeForFigures) {
  const Schedule schedule({}, 1000, 4);
  EXPECT_EQ(schedule.preparation_deadline_ns(200), 600U);
}

}  // namespace
}  // namespace crosstalk::collectors::calibration::schedule_test
