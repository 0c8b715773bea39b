// SPDX-License-Identifier: Apache-2.0
#include "profile/topology.h"

#include <gtest/gtest.h>

namespace crosstalk::profile::topology_test {
namespace {

// Two packages of two cores; the first package's cores have two threads each and an L2 of their own.
const char* const two_packages = "0 0 0 0 0 0;1 0 0 0 0 0;2 1 0 2 0 0;3 1 0 2 0 0;8 0 1 8 8 1;9 1 1 9 8 1";

TEST(Topology, WhatTwoProcessorsShare) {
  const auto topology = Topology::parse(two_packages);
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->between(1, 1), Nearness::same_cpu);
  EXPECT_EQ(topology->between(0, 1), Nearness::same_core);
  EXPECT_EQ(topology->between(1, 2), Nearness::same_l3);
  EXPECT_EQ(topology->between(8, 9), Nearness::same_l3);
  EXPECT_EQ(topology->between(0, 8), Nearness::other_package) << "its core has the same number in another package";
  EXPECT_EQ(topology->between(0, 5), Nearness::unknown);
  EXPECT_EQ(topology->between(5, 5), Nearness::same_cpu) << "whatever it is";
}

TEST(Topology, WhatIsNotKnownIsNotShared) {
  const auto topology = Topology::parse("0 -1 0 -1 -1 -1;1 -1 0 -1 -1 -1;2 -1 -1 -1 -1 -1");
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->between(0, 1), Nearness::same_package);
  EXPECT_EQ(topology->between(0, 2), Nearness::unknown);
}

TEST(Topology, ClustersShareL2) {
  EXPECT_EQ(Topology::parse("0 0 0 0 0 0;1 1 0 0 0 0")->between(0, 1), Nearness::same_l2);
}

TEST(Topology, TextAndBack) {
  const auto topology = Topology::parse(two_packages);
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->text(), two_packages);
  EXPECT_EQ(Topology::parse(topology->text())->cpus(), topology->cpus());
  EXPECT_TRUE(Topology::parse("")->cpus().empty());
}

TEST(Topology, GarbageIsRefused) {
  for (const char* text : {"0", "0 0 0 0 0", "a b c d e f", "0 0 0 0 0 0 0", "-1 0 0 0 0 0", "0 -2 0 0 0 0",
                           "99999999999 0 0 0 0 0", ";"}) {
    EXPECT_FALSE(Topology::parse(text)) << text;
  }
}

}  // namespace
}  // namespace crosstalk::profile::topology_test
