// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_traffic.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution::test::loop_traffic_test {
namespace {

using models::Level;

LoopTraffic known(double memory, std::array<double, 4> served = {}) {
  LoopTraffic traffic;
  traffic.per_s = models::LevelBytes{0, 0, memory};
  traffic.served = served;
  return traffic;
}

models::Figure measured(double value) {
  models::Figure figure;
  figure.value = value;
  return figure;
}

TEST(LoopTraffic, IsNotKnownWithoutIterationsOrCode) {
  const models::Machine machine;
  Rate rate;
  rate.unknown = "no pair of samples";
  EXPECT_EQ(traffic_of(rate, {}, machine).unknown, "no pair of samples");
  rate.per_s = 100;
  EXPECT_EQ(traffic_of(rate, {}, machine).unknown, "its code is not known");
}

TEST(LoopTraffic, InnerLoopsCountByTheirShareOfItsTime) {
  LoopTraffic first = known(100, {0, 0, 4, 0});
  first.scattered = true;
  const LoopTraffic second = known(60, {0, 0, 0, 8});
  const std::vector<InnerLoop<LoopTraffic>> inner = {{2, &first}, {2, &second}};
  const LoopTraffic sum = traffic_inside(4, inner);
  ASSERT_TRUE(sum.per_s) << sum.unknown;
  EXPECT_NEAR(sum.per_s->memory, 80, 1e-9);
  EXPECT_NEAR(sum.served[2], 2, 1e-9);
  EXPECT_NEAR(sum.served[3], 4, 1e-9);
  EXPECT_TRUE(sum.scattered);
  EXPECT_FALSE(sum.stores_only_new);
}

TEST(LoopTraffic, InnerLoopsDoNotTellOfMuchTimeOutsideThem) {
  const LoopTraffic part = known(100);
  const std::vector<InnerLoop<LoopTraffic>> inner = {{1.9, &part}};
  EXPECT_TRUE(traffic_inside(2, inner).per_s);
  EXPECT_EQ(traffic_inside(2.1, inner).unknown, "much of its time is outside its inner loops");
}

TEST(LoopTraffic, AnInnerLoopThatIsNotKnownHidesTheSum) {
  LoopTraffic unknown;
  unknown.unknown = "it calls functions";
  const LoopTraffic part = known(100);
  const std::vector<InnerLoop<LoopTraffic>> inner = {{1, &part}, {1, &unknown}};
  EXPECT_EQ(traffic_inside(2, inner).unknown, "of a loop inside it: it calls functions");
}

TEST(LoopTraffic, WaitsAreSharedByLinesAndLatencies) {
  models::Machine machine;
  machine.latencies = {{Level::l3, measured(1e-8)}, {Level::memory, measured(1e-7)}};
  std::string missing;
  const auto shares = shares_of_waits(known(1, {0, 0, 10, 1}), machine, missing);
  ASSERT_TRUE(shares) << missing;
  EXPECT_NEAR((*shares)[2], 0.5, 1e-9);
  EXPECT_NEAR((*shares)[3], 0.5, 1e-9);
  EXPECT_EQ(shares_of_waits(known(0), machine, missing), (models::LevelShares{1, 0, 0, 0})) << "no line moves";
}

TEST(LoopTraffic, ALatencyThatIsNotInTheCalibrationIsNamed) {
  models::Machine machine;
  std::string missing;
  EXPECT_FALSE(shares_of_waits(LoopTraffic{}, machine, missing));
  EXPECT_EQ(missing, "") << "the traffic is not known";
  EXPECT_FALSE(shares_of_waits(known(1, {0, 0, 0, 1}), machine, missing));
  EXPECT_NE(missing.find("memory is not in the calibration"), std::string::npos) << missing;
}

}  // namespace
}  // namespace crosstalk::attribution::test::loop_traffic_test
