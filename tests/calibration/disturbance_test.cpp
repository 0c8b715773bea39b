// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/disturbance.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace crosstalk::collectors::calibration::disturbance_test {
namespace {

TEST(Disturbance, IsASwitchThatWasNotAskedFor) {
  EXPECT_FALSE(was_disturbed({1'000'000, 1'000'000, 0}));
  EXPECT_TRUE(was_disturbed({1'000'000, 1'000'000, 1}));
}

TEST(Disturbance, IsTimeWithoutTheProcessor) {
  EXPECT_FALSE(was_disturbed({1'000'000, 1'000'400, 0})) << "the CPU clock is read around the other one";
  EXPECT_FALSE(was_disturbed({1'000'000, 995'000, 0}));
  EXPECT_TRUE(was_disturbed({1'000'000, 980'000, 0}));
  EXPECT_TRUE(was_disturbed({1'000'000, 0, 0}));
  EXPECT_FALSE(was_disturbed({}));
}

TEST(ThreadWatch, TellsASleepFromWork) {
  ThreadWatch watch;
  watch.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  watch.end();
  EXPECT_GE(watch.use().wall_ns, 5'000'000U);
  EXPECT_EQ(watch.end_ns() - watch.begin_ns(), watch.use().wall_ns);
  EXPECT_TRUE(was_disturbed(watch.use()));
}

TEST(StolenTicks, AreTheEighthColumnOfTheProcessorsThatAreMeant) {
  const std::string stat =
      "cpu  40 0 40 900 0 0 0 111 0 0\n"
      "cpu0 20 0 20 450 0 0 0 11 0 0\n"
      "cpu1 20 0 20 450 0 0 0 100 0 0\n"
      "cpu10 20 0 20 450 0 0 0 1000 0 0\n"
      "intr 12345 1 2 3 4 5 6 7 8\n";
  EXPECT_EQ(stolen_ticks(stat, {0}), 11U);
  EXPECT_EQ(stolen_ticks(stat, {1}), 100U);
  EXPECT_EQ(stolen_ticks(stat, {0, 10}), 1011U);
  EXPECT_EQ(stolen_ticks(stat, {7}), 0U);
}

TEST(StolenTicks, AreNoneWhereTheKernelTellsNone) {
  EXPECT_EQ(stolen_ticks("", {0}), 0U);
  EXPECT_EQ(stolen_ticks("cpu0 1 2 3 4", {0}), 0U);
  EXPECT_EQ(stolen_ticks("cpu0 a b c d e f g h", {0}), 0U);
}

TEST(StealTime, CanBeAskedAnywhere) {
  StealTime steal({0});
  static_cast<void>(steal.any_since_last());  // a shared machine may tell of some
}

}  // namespace
}  // namespace crosstalk::collectors::calibration::disturbance_test
