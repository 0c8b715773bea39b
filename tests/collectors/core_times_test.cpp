// SPDX-License-Identifier: Apache-2.0
#include "collectors/core_times.h"

#include <gtest/gtest.h>

namespace crosstalk::collectors::core_times_test {
namespace {

using crosstalk::collectors::forward_ps;
using crosstalk::collectors::measure_core_times;

TEST(CoreTimes, WhatIsForwardedIsWhatTheAdditionLeaves) { EXPECT_EQ(forward_ps(1300, 260), 1040U); }

TEST(CoreTimes, AWordThatIsRenamedIsForwardedInNoTime) {
  EXPECT_EQ(forward_ps(260, 260), 1U);
  EXPECT_EQ(forward_ps(255, 260), 1U) << "known, though it is nothing";
}

TEST(CoreTimes, ALinkThatTakesLessThanItsAdditionSaysNothing) {
  EXPECT_EQ(forward_ps(0, 260), 0U);
  EXPECT_EQ(forward_ps(100, 260), 0U);
}

TEST(CoreTimes, TheQuickerOfTwoMeasurementsCounts) {
  const auto times = quicker({250, 4600, 0}, {233, 5000, 1});
  EXPECT_EQ(times.cycle_ps, 233U);
  EXPECT_EQ(times.locked_ps, 4600U);
  EXPECT_EQ(times.forward_ps, 1U) << "0 is no figure";
}

TEST(CoreTimes, EveryFigureIsMeasured) {
  const auto times = measure_core_times();
  EXPECT_GT(times.cycle_ps, 0U);
  EXPECT_GT(times.locked_ps, times.cycle_ps);
  EXPECT_GT(times.forward_ps, 0U);
}

}  // namespace
}  // namespace crosstalk::collectors::core_times_test
