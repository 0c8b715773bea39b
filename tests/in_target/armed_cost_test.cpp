// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/core/armed_cost.h"

#include <gtest/gtest.h>

namespace crosstalk::in_target::armed_cost_test {
namespace {

profile::SessionConfig prices() {
  profile::SessionConfig config;
  config.watch_switch_cost_ns = 500;
  config.armed_byte_ps = 250;
  config.armed_copy_permille = 9000;
  config.transfer_call_ns = 400;
  return config;
}

constexpr ArmedParts always{{1, 1, 0, 0}};

TEST(ArmedCost, WhatWasNeverArmedCostsNothing) {
  const Activity did{.armed = {},
                     .copying_part = 1,
                     .kernel_slowdown = 1,
                     .switches = 9,
                     .faults = 9,
                     .user_ns = 9000,
                     .kernel_ns = 9000};
  EXPECT_EQ(armed_cost_ns(did, prices()), 0);
}

TEST(ArmedCost, SwitchesAreChargedForEachArmedWord) {
  EXPECT_DOUBLE_EQ(armed_cost_ns({.armed = {{0.25, 0.25, 0, 0}}, .switches = 8}, prices()), 8 * 500 * 0.5);
  EXPECT_DOUBLE_EQ(armed_cost_ns({.armed = {{1, 1, 0.5, 0.5}}, .switches = 8}, prices()), 8 * 500 * 3);
}

TEST(ArmedCost, FaultsAreChargedForTheArmedPart) {
  EXPECT_DOUBLE_EQ(armed_cost_ns({.armed = {{0.5, 0.25, 0, 0}}, .faults = 10}, prices()), 0.5 * 10 * 4096 * 0.25);
}

TEST(ArmedCost, ObservedTimesHoldTheirSlowerPart) {
  // 1000 ns of system calls, half of them slowed by half: 1250 ns are observed.
  EXPECT_DOUBLE_EQ(armed_cost_ns({.armed = {{0.5, 0.5, 0, 0}}, .kernel_slowdown = 0.5, .kernel_ns = 1250}, prices()),
                   250);
  // 1000 ns of copies, armed all the time: 10,000 ns are observed.
  EXPECT_DOUBLE_EQ(armed_cost_ns({.armed = always, .copying_part = 0.5, .user_ns = 20'000}, prices()), 9000);
}

TEST(ArmedCost, NeverExceedsWhatTheThreadRan) {
  const Activity did{.armed = always, .copying_part = 1, .kernel_slowdown = 100, .user_ns = 1000, .kernel_ns = 1000};
  EXPECT_LT(armed_cost_ns(did, prices()), 2000);
}

TEST(ArmedCost, CallsAreSlowerTheMoreTheyCopy) {
  EXPECT_EQ(call_slowdown(0, prices()), 0);
  EXPECT_NEAR(call_slowdown(64, prices()), 0.04, 0.001);
  EXPECT_GT(call_slowdown(4096, prices()), 1.5);
  EXPECT_LT(call_slowdown(1U << 30U, prices()), 9);  // copies alone: 0.25 ns a byte beside 0.03
}

TEST(ArmedParts, SlotsAreIndependent) {
  const ArmedParts parts{{0.5, 0.4, 0.2, 0.2}};
  EXPECT_DOUBLE_EQ(parts.of_slot(0), 0.5);
  EXPECT_DOUBLE_EQ(parts.any(), 0.6);
  EXPECT_DOUBLE_EQ(parts.words(), 1.3);
}

TEST(RunningMean, ForgetsSlowly) {
  RunningMean mean;
  mean.add(4);
  mean.add(2);
  EXPECT_DOUBLE_EQ(mean.mean(), 3);
  for (int i = 0; i < 2000; ++i) {
    mean.add(1);
  }
  EXPECT_NEAR(mean.mean(), 1, 1e-5);
}

}  // namespace
}  // namespace crosstalk::in_target::armed_cost_test
