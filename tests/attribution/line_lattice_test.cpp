// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/line_lattice.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace crosstalk::attribution::line_lattice_test {
namespace {

constexpr std::uint64_t base = 0x10000;

/// `samples` that fall on any of `lines` lines at `distance` bytes alike.
LineSamples sweep(std::uint64_t lines, std::uint64_t distance, std::uint64_t samples, std::uint64_t begin = base,
                  std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  LineSamples result;
  for (std::uint64_t i = 0; i < samples; ++i) {
    ++result[begin + random() % lines * distance];
  }
  return result;
}

TEST(LineLattice, NothingSampledIsNoCluster) { EXPECT_TRUE(line_clusters({}).empty()); }

TEST(LineLattice, OneLineIsOneForSure) {
  const auto clusters = line_clusters({{base, 500}});
  ASSERT_EQ(clusters.size(), 1U);
  EXPECT_EQ(clusters[0].lines, 1);
  EXPECT_EQ(clusters[0].error, 0);
  EXPECT_TRUE(clusters[0].even);
}

TEST(LineLattice, AFewSamplesDoNotTellHowManyLinesThereAre) {
  EXPECT_FALSE(line_clusters({{base, 5}}).at(0).even);
  EXPECT_TRUE(line_clusters({{base, 6}}).at(0).even);
  EXPECT_FALSE(line_clusters({{base, 2}, {base + 64, 2}}).at(0).even);
}

TEST(LineLattice, AllLinesOfAnArray) {
  const auto clusters = line_clusters(sweep(128, 64, 3000));
  ASSERT_EQ(clusters.size(), 1U);
  EXPECT_EQ(clusters[0].lines, 128);
  EXPECT_EQ(clusters[0].distance, 64U);
  EXPECT_LT(clusters[0].error, 1e-6);
  EXPECT_TRUE(clusters[0].even);
}

TEST(LineLattice, WhatWasNotSampledIsCountedWithinItsInterval) {
  int held = 0;
  constexpr int runs = 200;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    const auto clusters = line_clusters(sweep(1024, 128, 200, base, seed));
    ASSERT_EQ(clusters.size(), 1U);
    EXPECT_EQ(clusters[0].distance, 128U);
    EXPECT_TRUE(clusters[0].even);
    EXPECT_NEAR(clusters[0].lines, 1024, 60);
    held += std::abs(clusters[0].lines - 1024) <= clusters[0].error * clusters[0].lines + 0.5 ? 1 : 0;
  }
  EXPECT_GE(held, runs * 85 / 100);
}

TEST(LineLattice, FarApartIsTwoClusters) {
  LineSamples both = sweep(256, 64, 400);
  both.merge(sweep(256, 64, 400, base + (1U << 20U)));
  const auto clusters = line_clusters(both);
  ASSERT_EQ(clusters.size(), 2U);
  EXPECT_NEAR(clusters[0].lines, 256, 8);
  EXPECT_NEAR(clusters[1].lines, 256, 8);
}

TEST(LineLattice, LinesThatAreHardlyEverSampledAreSaidToBeUneven) {
  LineSamples samples = sweep(8, 64, 2000);
  samples.merge(sweep(1024, 64, 12, base));
  const auto clusters = line_clusters(samples);
  ASSERT_FALSE(clusters.empty());
  bool even = true;
  for (const LineCluster& cluster : clusters) {
    even &= cluster.even && cluster.lines > 100;
  }
  EXPECT_FALSE(even);
}

TEST(LineLattice, ASweepThatIsLikelyShorterThanAllTogetherWouldHaveItStaysAsItIs) {
  LineCluster shorter =
      line_clusters({{base, 5}, {base + std::uint64_t{400} * 64, 4}, {base + std::uint64_t{900} * 64, 5}}).at(0);
  LineCluster longer =
      line_clusters({{base, 3}, {base + std::uint64_t{800} * 64, 3}, {base + std::uint64_t{1700} * 64, 3}}).at(0);
  shorter.distance = longer.distance = 64;
  shorter.lines = 1100, shorter.error = longer.error = 0.3;
  longer.lines = 1900;
  std::vector<LineCluster*> both{&shorter, &longer};
  share_length(both);
  EXPECT_EQ(shorter.lines, 1100);
}

TEST(LineLattice, ASweepWhoseSamplesLieInOnePartIsLessCertain) {
  LineSamples samples = sweep(600, 64, 40, base + std::uint64_t{1000} * 64);
  samples.merge(sweep(1000, 64, 12));  // the same code, where it takes less time: there may be more such lines beyond
  EXPECT_GT(line_clusters(samples).at(0).error, 2 * line_clusters(sweep(1600, 64, 52)).at(0).error);
}

TEST(LineLattice, SweepsOfSeveralThreadsTellTheirLengthTogether) {
  std::vector<LineCluster> clusters;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    clusters.push_back(line_clusters(sweep(512, 64, 30, base + (thread << 20U), thread + 1)).at(0));
  }
  std::vector<LineCluster*> all;
  all.reserve(clusters.size());
  for (LineCluster& cluster : clusters) {
    all.push_back(&cluster);
  }
  const double alone = clusters[0].error;
  share_length(all);
  for (const LineCluster& cluster : clusters) {
    EXPECT_NEAR(cluster.lines, 512, 20);
    EXPECT_LT(cluster.error, alone / 2);
  }
}

TEST(LineLattice, ASweepThatIsLongerThanAllTogetherWouldHaveItStaysAsItIs) {
  LineCluster small = line_clusters(sweep(16, 64, 400)).at(0);
  LineCluster large = line_clusters(sweep(512, 64, 60, base + (1U << 20U))).at(0);
  const double before = large.lines;
  std::vector<LineCluster*> both{&small, &large};
  share_length(both);
  EXPECT_EQ(small.lines, 16);
  EXPECT_EQ(large.lines, before);
}

}  // namespace
}  // namespace crosstalk::attribution::line_lattice_test
