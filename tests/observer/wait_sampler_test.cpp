// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/wait_sampler.h"

#include <gtest/gtest.h>

namespace crosstalk::observer::wait_sampler_test {
namespace {

constexpr double budget = 0.03;

TEST(WaitSampler, PausesAreAsLongAsTheBudgetWants) {
  EXPECT_EQ(pause_between_looks(5'000, 1, budget), 10'000'000U) << "no shorter";
  EXPECT_EQ(pause_between_looks(60'000, 1, budget), 20'000'000U) << "a tenth of the budget";
  EXPECT_EQ(pause_between_looks(60'000, 2, budget), 10'000'000U);
  EXPECT_EQ(pause_between_looks(60'000, 0, budget), 60'000'000U) << "a thousandth of a processor";
  EXPECT_EQ(pause_between_looks(1e7, 0.5, budget), 1'000'000'000U) << "no longer";
}

TEST(WaitSampler, LooksOnDemandOnly) {
  profile::SessionConfig config;
  EXPECT_EQ(WaitSampler(config, 1, 500).due_ns(), UINT64_MAX);
  config.measure_waits = 1;
  EXPECT_EQ(WaitSampler(config, 1, 500).due_ns(), 500U);
}

}  // namespace
}  // namespace crosstalk::observer::wait_sampler_test
