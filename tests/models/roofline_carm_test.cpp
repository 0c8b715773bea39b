// SPDX-License-Identifier: Apache-2.0
// Roofs, points of loops, and the cache-aware model's regions, bottlenecks and bounds on the gain.
#include <gtest/gtest.h>

#include <random>

#include "models/roofline/carm.h"
#include "models/roofline/loop_point.h"
#include "tests/models/roofline_example.h"

namespace crosstalk::models::roofline::carm_test {
namespace {

using namespace example;

/// SPARCITY D1.2, 2.2.1: an i7-7820X with eight threads; its peak of scalar operations is taken to be 57.6 Gflop/s.
Carm source_machine() {
  return Carm::of({bandwidth(Level::l3, 61.5 * giga, 8), bandwidth(Level::memory, 16.5 * giga, 8),
                   bandwidth(Level::l1d, 168 * giga, 8), bandwidth(Level::l2, 158 * giga, 8)},
                  compute(57.6 * giga, 8))
      .value();
}

LoopPoint triad() {  // one iteration: 2 flops, two loads and a store of 8 bytes
  LoopPoint point;
  point.flops = exact(2);
  point.bytes_core = exact(24);
  point.bytes_memory = exact(32);
  point.memory_instructions = exact(3);
  point.other_instructions = exact(6);
  point.cpu_s = within(0.9e-9, 1e-9, 1.1e-9);
  point.hz = exact(3 * giga);
  return point;
}

TEST(RooflinePoint, RatiosOfOneIteration) {
  const LoopPoint point = triad();
  EXPECT_EQ(intensity(point).value(), exact(2.0 / 24));  // exact: the time does not enter it
  EXPECT_EQ(intensity(point, Level::memory).value(), exact(2.0 / 32));
  EXPECT_EQ(instruction_intensity(point).value(), exact(2));
  EXPECT_NEAR(performance(point).value().value(), 2 * giga, 1e-3);
  EXPECT_NEAR(performance(point).value().low(), 2 * giga / 1.1, 1e-3);
  EXPECT_NEAR(instructions_per_cycle(point).value().value(), 3, 1e-12);
  EXPECT_EQ(performance(point).value().basis(), Basis::sampled);
}

TEST(RooflinePoint, WhatIsNotKnownIsAbsentWithItsReason) {
  const LoopPoint point;
  EXPECT_EQ(performance(point).error().message, "the loop's floating-point operations are not known");
  EXPECT_EQ(intensity(triad(), Level::l2).error().message, "the loop's bytes from L2 are not known");
  LoopPoint still = triad();
  still.bytes_core = exact(0);
  EXPECT_EQ(intensity(still).error().message, "the number of bytes to the core is 0; it must be positive");
  still.cpu_s = exact(0);
  EXPECT_FALSE(performance(still));
  still.memory_instructions = exact(0);
  EXPECT_FALSE(instruction_intensity(still));
}

TEST(RooflinePoint, ThreadsAddUpOverTheElapsedTime) {
  LoopPoint slow = triad();
  slow.cpu_s = exact(4e-9);
  slow.setting = {.threads = 1, .width = Width::avx2, .operation = Operation::fma};
  LoopPoint fast = slow;
  fast.cpu_s = exact(1e-9);
  fast.setting.operation = Operation::add;
  const std::vector<LoopPoint> threads = {slow, fast, fast};
  const LoopPoint total = total_of(threads, exact(4e-9));
  EXPECT_EQ(total.setting.threads, 3U);
  EXPECT_EQ(total.setting.width, Width::avx2);
  EXPECT_EQ(total.setting.operation, std::nullopt);
  EXPECT_DOUBLE_EQ(performance(total).value().value(), 1.5 * giga);
  EXPECT_DOUBLE_EQ(instructions_per_cycle(total).value().value(), 1.5);  // of a core: 27 / (6 ns 3 GHz)
  EXPECT_FALSE(performance(total_of(threads, unknown("seconds of elapsed time"))));
  EXPECT_FALSE(performance(total_of({}, exact(1))));
}

TEST(RooflineRoof, ComparesLikeWithLike) {
  Roof roof = compute(giga, 4);
  roof.width = Width::avx2;
  EXPECT_TRUE(comparable(roof, {.threads = 4, .width = Width::avx2}));
  EXPECT_FALSE(comparable(roof, {.threads = 2, .width = Width::avx2}));
  EXPECT_FALSE(comparable(roof, {.threads = 4, .width = Width::sse}));
  EXPECT_FALSE(comparable(roof, {.threads = 4}));  // a mix of widths
  const std::vector<Roof> roofs = {roof, compute(giga, 4), compute(giga, 1)};
  EXPECT_EQ(comparable_roofs(roofs, {.threads = 4, .width = Width::sse}).size(), 1U);
}

TEST(RooflineRoof, OtherThreadCountsAreInterpolated) {
  const Roof one = bandwidth(Level::memory, 10 * giga, 1), all = bandwidth(Level::memory, 24 * giga, 8);
  const Roof some = at_threads(one, all, 4).value();
  EXPECT_DOUBLE_EQ(some.height.value(), 16 * giga);
  EXPECT_DOUBLE_EQ(some.height.low(), 16 * giga);
  EXPECT_DOUBLE_EQ(some.height.high(), 24 * giga);  // four times that of one thread exceeds that of all
  EXPECT_EQ(some.height.basis(), Basis::modelled);
  EXPECT_EQ(some.threads, 4U);
  EXPECT_EQ(at_threads(one, all, 8).value().height, all.height);
  for (const std::uint32_t outside : {0U, 9U}) {
    EXPECT_FALSE(at_threads(one, all, outside));
  }
  EXPECT_FALSE(at_threads(one, compute(giga, 8), 4));
}

TEST(RooflineCarm, SourceFigures) {
  const Carm carm = source_machine();
  expect_vectors({
      {"L1 scales over threads", 168 / 23.3, 7.21, 0.005},
      {"L2 scales over threads", 158 / 19.82, 7.97, 0.005},
      {"DRAM at the highest SpMV intensity", carm.attainable(Level::memory, exact(1.0 / 6)).value().value() / giga,
       2.75, 1e-6},
      {"near ridge", carm.near_ridge().value(), 57.6 / 168, 1e-6},
      {"far ridge", carm.far_ridge().value(), 57.6 / 16.5, 1e-6},
  });
}

TEST(RooflineCarm, TimeIsTheLongerOfTransfersAndOperations) {
  const Roof memory = bandwidth(Level::memory, 10), peak = compute(4);
  EXPECT_EQ(least_time(exact(100), exact(8), memory, peak).value(), exact(10));
  EXPECT_EQ(least_time(exact(10), exact(8), memory, peak).value(), exact(2));
}

TEST(RooflineCarm, RegionsLieBetweenRidges) {
  const Carm carm = source_machine();
  const double near = carm.near_ridge().value(), far = carm.far_ridge().value();
  EXPECT_EQ(carm.region(exact(near * 0.999)), Region::memory);
  EXPECT_EQ(carm.region(exact(near)), Region::mixed);
  EXPECT_EQ(carm.region(exact(far * 0.999)), Region::mixed);
  EXPECT_EQ(carm.region(exact(far)), Region::compute);
  EXPECT_EQ(carm.region(within(near * 0.9, near, near * 1.1)), Region::undecided);
  EXPECT_EQ(carm.region(within(far * 0.9, far, far * 1.1)), Region::undecided);
}

TEST(RooflineCarm, TheRoofsAroundThePointAreItsBottlenecks) {
  const Verdict verdict = source_machine().judge(exact(0.1), exact(3 * giga)).value();
  ASSERT_TRUE(verdict.below && verdict.above);
  EXPECT_EQ(verdict.below->name, "memory");
  EXPECT_EQ(verdict.above->name, "L3");
  EXPECT_NEAR(verdict.gain_bound.value().value(), 6.15 / 3, 1e-12);
  EXPECT_EQ(verdict.region, Region::memory);
  EXPECT_EQ(verdict.advice, (std::vector{Advice::access_pattern, Advice::locality}));
  EXPECT_EQ(verdict.undecided, "");
  ASSERT_EQ(bottlenecks(verdict).size(), 2U);
  EXPECT_EQ(bottlenecks(verdict).front().name, "memory");
}

TEST(RooflineCarm, ALoopAtARoofHasReachedIt) {
  const Verdict verdict = source_machine().judge(exact(0.1), within(1.6 * giga, 1.7 * giga, 1.8 * giga)).value();
  ASSERT_EQ(verdict.reached.size(), 1U);
  EXPECT_EQ(verdict.reached.front().name, "memory");
  EXPECT_EQ(bottlenecks(verdict).size(), 1U);
  EXPECT_EQ(verdict.above->name, "L3");
  EXPECT_FALSE(verdict.below);
}

TEST(RooflineCarm, IntervalsThatSpanRoofsAreUndecided) {
  const Verdict verdict = source_machine().judge(exact(0.1), within(15 * giga, 16 * giga, 17 * giga)).value();
  EXPECT_EQ(verdict.reached.size(), 2U);
  EXPECT_EQ(verdict.undecided, "the point may be at the roofs of L2 and L1D");
  EXPECT_NEAR(verdict.gain_bound.value().value(), 16.8 / 16, 1e-12);
  EXPECT_EQ(source_machine().judge(within(0.3, 0.35, 0.4), exact(giga)).value().undecided,
            "the interval of its intensity spans a ridge");
}

TEST(RooflineCarm, BelowEveryRoofOtherCausesComeFirst) {
  const Verdict verdict = source_machine().judge(exact(0.1), exact(giga)).value();
  EXPECT_TRUE(below_every_roof(verdict));
  EXPECT_EQ(verdict.advice.front(), Advice::hide_latency);
  const Verdict right = source_machine().judge(exact(10), exact(giga)).value();
  EXPECT_EQ(right.above->name, "peak");
  EXPECT_EQ(right.advice.back(), Advice::thread);
}

TEST(RooflineCarm, AboveEveryRoofThereIsNoGain) {
  const Verdict verdict = source_machine().judge(exact(0.1), exact(20 * giga)).value();
  EXPECT_FALSE(verdict.above);
  EXPECT_FALSE(verdict.gain_bound);
  EXPECT_NE(verdict.gain_bound.error().message.find("calibrate"), std::string::npos);
}

TEST(RooflineCarm, NoLevelExceedsANearerOne) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> figure(1, 100);
  for (int i = 0; i < 200; ++i) {
    const Carm carm = Carm::of({bandwidth(Level::l1d, figure(random)), bandwidth(Level::l2, figure(random)),
                                bandwidth(Level::l3, figure(random)), bandwidth(Level::memory, figure(random))},
                               compute(figure(random)))
                          .value();
    for (const double at : {0.01, 0.1, 1.0, 10.0, 100.0}) {
      for (const auto& [near, far] :
           {std::pair{Level::l1d, Level::l2}, {Level::l2, Level::l3}, {Level::l3, Level::memory}}) {
        EXPECT_GE(carm.attainable(near, exact(at)).value().value(), carm.attainable(far, exact(at)).value().value());
      }
    }
  }
}

TEST(RooflineCarm, ADisturbedNearerLevelTakesTheFartherOnesBandwidth) {
  const Carm carm = Carm::of({bandwidth(Level::l1d, 9), bandwidth(Level::l2, 10)}, compute(1)).value();
  EXPECT_EQ(carm.bandwidths().front().height.value(), 10);
  EXPECT_EQ(carm.bandwidths().front().height.basis(), Basis::modelled);
  EXPECT_EQ(carm.bandwidths().back().height.basis(), Basis::decoded);
}

TEST(RooflineCarm, RefusesRoofsThatDoNotBelongTogether) {
  EXPECT_FALSE(Carm::of({}, compute(1)));
  EXPECT_FALSE(Carm::of({bandwidth(Level::l1d, 1, 2)}, compute(1)));
  // Scalar loads beside vector operations are no contradiction.
  Roof scalar = bandwidth(Level::l1d, 1), vector = compute(1);
  scalar.width = Width::scalar;
  vector.width = Width::avx2;
  EXPECT_TRUE(Carm::of({scalar}, vector));
  EXPECT_FALSE(Carm::of({bandwidth(Level::l1d, 1), bandwidth(Level::l1d, 2)}, compute(1)));
  EXPECT_FALSE(Carm::of({compute(1)}, compute(1)));
  EXPECT_FALSE(Carm::of({bandwidth(Level::l1d, 0)}, compute(1)));
  EXPECT_FALSE(Carm::of({bandwidth(Level::l1d, 1)}, compute(0)));
  EXPECT_FALSE(source_machine().judge(exact(0), exact(1)));
  EXPECT_FALSE(Carm::of({bandwidth(Level::l1d, 1)}, compute(1)).value().attainable(Level::l3, exact(1)));
}

TEST(RooflineCarm, ExtremesStayFinite) {
  with_extreme_estimates(4, [](const std::vector<Estimate>& extremes) {
    Roof memory = bandwidth(Level::memory, 1), peak = compute(1);
    memory.height = extremes[0];
    peak.height = extremes[1];
    expect_sane(ridge(memory, peak));
    expect_sane(attainable(memory, peak, extremes[2]));
    expect_sane(least_time(extremes[2], extremes[3], memory, peak));
    if (const auto carm = Carm::of({memory}, peak)) {
      expect_sane(carm->judge(extremes[2], extremes[3]));
    }
    Roof more = memory;
    more.height = extremes[2];
    more.threads = 3;
    expect_sane(at_threads(memory, more, 2));
  });
}

}  // namespace
}  // namespace crosstalk::models::roofline::carm_test
