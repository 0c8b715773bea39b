// SPDX-License-Identifier: Apache-2.0
#include "attribution/roofline/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/attribution/roofline_example.h"

namespace crosstalk::attribution::roofline_test {
namespace {

using models::roofline::Advice;
using models::roofline::Basis;

Analysis with(std::vector<LoopRow> loops) {
  Analysis analysis;
  analysis.loops = std::move(loops);
  for (const LoopRow& loop : analysis.loops) {
    analysis.cpu_s += loop.self_s;
  }
  return analysis;
}

Roofline placed(const Analysis& analysis) { return roofline_of(analysis, test::roofline_machine()); }

// 2 operations on 24 bytes, as a triad: at 10 GB/s 0.833 Gflop/s.
TEST(Roofline, AStreamIsAtTheRoofOfMemory) {
  const Analysis analysis = with({test::roofline_loop(1, 2, 24, 10e9 / 24)});
  const Roofline roofline = placed(analysis);
  ASSERT_EQ(roofline.loops.size(), 1U);
  const RooflineLoop& loop = roofline.loops[0];
  EXPECT_DOUBLE_EQ(loop.intensity.value(), 2.0 / 24);
  EXPECT_EQ(loop.intensity.low(), loop.intensity.high()) << "iterations cancel";
  EXPECT_EQ(loop.intensity.basis(), Basis::decoded);
  EXPECT_NEAR(loop.performance.value(), 2 * 10e9 / 24, 1);
  EXPECT_LT(loop.performance.low(), loop.performance.value());
  ASSERT_EQ(loop.carm.reached.size(), 1U);
  EXPECT_EQ(loop.carm.reached[0].name, "memory");
  ASSERT_TRUE(loop.irm);
  EXPECT_EQ(loop.irm->bottleneck, models::Level::memory);
}

TEST(Roofline, BetweenRoofsBothAreNamed) {
  const Roofline roofline = placed(with({test::roofline_loop(1, 2, 24, 70e9 / 24)}));
  ASSERT_EQ(roofline.loops.size(), 1U);
  const models::roofline::Verdict& carm = roofline.loops[0].carm;
  ASSERT_TRUE(carm.below && carm.above);
  EXPECT_EQ(carm.below->name, "L3");
  EXPECT_EQ(carm.above->name, "L2");
  ASSERT_TRUE(carm.gain_bound);
  EXPECT_NEAR(carm.gain_bound->value(), 100.0 / 70, 1e-6);
  ASSERT_FALSE(carm.advice.empty());
  EXPECT_EQ(carm.advice[0], Advice::locality);
}

TEST(Roofline, WhatALoopDoesAlreadyIsNotAdvised) {
  const Roofline roofline = placed(with({test::roofline_loop(1, 64, 8, 20e9 / 64)}));
  ASSERT_EQ(roofline.loops.size(), 1U);
  const auto& advice = roofline.loops[0].carm.advice;
  ASSERT_FALSE(advice.empty());
  EXPECT_EQ(std::count(advice.begin(), advice.end(), Advice::vectorise), 0) << "all of it is vectors";
  EXPECT_EQ(advice[0], Advice::independent_operations);
  ASSERT_TRUE(roofline.loops[0].irm);
  const auto& irm = *roofline.loops[0].irm;
  EXPECT_EQ(irm.region, models::roofline::Region::compute);
  EXPECT_EQ(std::count(irm.advice.begin(), irm.advice.end(), Advice::vectorise), 0) << "neither by the other model";
  ASSERT_FALSE(irm.advice.empty());
  EXPECT_EQ(irm.advice[0], Advice::independent_operations);
}

TEST(Roofline, LoopsWithoutAPlaceSayWhy) {
  LoopRow unknown = test::roofline_loop(1, 2, 24, 1e9, 3);
  unknown.rates.iterations = {std::nullopt, std::nullopt, "its visits are too short"};
  LoopRow integers = test::roofline_loop(2, 0, 24, 1e9, 2);
  LoopRow registers = test::roofline_loop(3, 2, 0, 1e9, 1);
  LoopRow outer = test::roofline_loop(4, 2, 24, 1e9);
  outer.self_s = 0.1;
  const Roofline roofline = placed(with({unknown, integers, registers, outer}));
  EXPECT_TRUE(roofline.loops.empty());
  ASSERT_EQ(roofline.unplaced.size(), 3U) << "a loop around another one is left out";
  EXPECT_EQ(roofline.unplaced[0].why, "its visits are too short");
  EXPECT_EQ(roofline.unplaced[1].why, "it does no floating-point operation");
  EXPECT_EQ(roofline.unplaced[2].why, "it loads and stores nothing, and reaches 4 % of the FP units");
  EXPECT_DOUBLE_EQ(roofline.unplaced[0].self_s, 3);
}

TEST(Roofline, ThreadsShareWhatTheMachineHas) {
  LoopRow loop = test::roofline_loop(1, 2, 24, 1e9);
  auto figures = std::make_shared<LoopFigures>(*loop.figures);
  figures->threads = 2.2;
  loop.figures = figures;
  models::Machine machine = test::roofline_machine();
  machine.processors.push_back({1, 1, 0, 0});
  for (models::Bandwidth& of : std::vector(machine.bandwidths)) {
    of.scope = models::Scope::all_cores;
    machine.bandwidths.push_back(of);
  }
  models::FlopPeak all = machine.flops[0];
  all.scope = models::Scope::all_cores;
  machine.flops.push_back(all);
  const Analysis analysis = with({loop});
  const Roofline roofline = roofline_of(analysis, machine);
  ASSERT_EQ(roofline.loops.size(), 1U);
  EXPECT_DOUBLE_EQ(roofline.loops[0].bandwidths.back().height.value(), 5e9);
}

TEST(Roofline, WithoutFiguresOfTheMachineNothingHasAPlace) {
  const Roofline roofline = roofline_of(with({test::roofline_loop(1, 2, 24, 1e9)}), {});
  EXPECT_TRUE(roofline.loops.empty());
  ASSERT_EQ(roofline.unplaced.size(), 1U);
  EXPECT_FALSE(roofline.unplaced[0].why.empty());
}

}  // namespace
}  // namespace crosstalk::attribution::roofline_test
