// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/store_rate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attribution/estimate/probe_errors.h"
#include "base/random.h"

namespace crosstalk::attribution::store_rate_test {
namespace {

/// Probes of a line that a partner, active for a part of the time, stores to at random moments.
ProbeOutcomes outcomes(double active, double rate, int count, std::uint64_t seed) {
  ProbeOutcomes result;
  std::uint64_t state = random_state(seed, 1);
  for (int i = 0; i < count; ++i) {
    const double gap_ns = std::exp2(8 + 6 * uniform(state));
    result.add({gap_ns, uniform(state) < active && uniform(state) < -std::expm1(-rate * gap_ns)});
  }
  return result;
}

TEST(StoreRate, IsToldByTheGaps) {
  for (const double rate : {2e-4, 1e-3, 1e-2}) {
    const StoreRate found = store_rate(outcomes(0.6, rate, 5000, 3));
    EXPECT_NEAR(found.active, 0.6, 0.1) << rate;
    EXPECT_GT(found.rate, rate / 1.5) << rate;
    EXPECT_LT(found.rate, rate * 1.5) << rate;
    EXPECT_LE(found.rate_low, rate * 1.1);
    EXPECT_GE(found.rate_high, rate / 1.1);
    EXPECT_GT(found.detection, 0);
    EXPECT_LE(found.detection, 1);
  }
}

TEST(StoreRate, IsLessCertainTheRarerTheStores) {
  const StoreRate frequent = store_rate(outcomes(0.6, 1e-2, 200, 3));
  const StoreRate rare = store_rate(outcomes(0.6, 5e-5, 200, 3));
  EXPECT_LT(frequent.active_high - frequent.active_low, 0.1);
  EXPECT_GT(rare.active_high - rare.active_low, 0.3);
  EXPECT_LE(rare.active_low, 0.6);
  EXPECT_GE(rare.active_high, 0.6);
  EXPECT_LT(rare.detection, frequent.detection);
}

TEST(StoreRate, StoresSeenAtAnyGapAreNotMissed) {
  ProbeOutcomes at_once;
  for (int i = 0; i < 20; ++i) {
    at_once.add({1e9, true});
  }
  const StoreRate found = store_rate(at_once);
  EXPECT_NEAR(found.detection, 1, 1e-6);
  EXPECT_NEAR(found.active_low, found.active_high, 1e-6);
}

TEST(StoreRate, OfFewOutcomesLittleIsKnown) {
  const StoreRate few = store_rate(outcomes(0.5, 1e-4, 40, 7));
  EXPECT_GT(few.active_high, 2 * few.active_low);
  EXPECT_GT(few.rate_high, 10 * few.rate_low);
}

TEST(StoreRate, WithoutAChangeNothingIsMadeUp) {
  EXPECT_EQ(store_rate({}).detection, 1);
  EXPECT_EQ(store_rate(outcomes(0, 1, 100, 5)).active, 0);
  EXPECT_EQ(store_rate(outcomes(0, 1, 100, 5)).detection, 1);
}

// Costs that one rate weights are wrong together, those of two rates by themselves.
TEST(ProbeErrors, WidenTheInterval) {
  ProbeRates rates;
  rates.rates = {{0.5, 0.4, 0.9}, {0.5, 0.4, 0.9}, {0.5, 0.4, 1.0}};
  rates.of_watch = {0, 0, 1, ProbeRates::none, 2};
  ProbeErrors together;
  together.add(&rates, 0, 50);
  together.add(&rates, 1, 50);
  const Interval wide = together.widened({100, 100}, 100, 1000, &rates);
  EXPECT_DOUBLE_EQ(wide.low, 80);
  EXPECT_DOUBLE_EQ(wide.high, 180);
  EXPECT_DOUBLE_EQ(together.widened({100, 100}, 100, 150, &rates).high, 150);
  ProbeErrors apart;
  apart.add(&rates, 0, 50);
  apart.add(&rates, 2, 50);
  EXPECT_LT(apart.widened({100, 100}, 100, 1000, &rates).high, 180);
  ProbeErrors perhaps_always;
  perhaps_always.add(&rates, 4, 100);
  EXPECT_DOUBLE_EQ(perhaps_always.widened({90, 120}, 100, 1000, &rates).high, 240) << "ends multiply";
  EXPECT_DOUBLE_EQ(perhaps_always.widened({90, 120}, 100, 1000, &rates).low, 100 - std::hypot(10, 20));
  ProbeErrors watched;
  watched.add(nullptr, 0, 100);
  watched.add(&rates, 3, 100);
  EXPECT_DOUBLE_EQ(watched.widened({90, 120}, 100, 1000, &rates).high, 120);
}

}  // namespace
}  // namespace crosstalk::attribution::store_rate_test
