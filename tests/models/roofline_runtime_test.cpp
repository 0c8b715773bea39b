// SPDX-License-Identifier: Apache-2.0
// Tests the cost of each feature that a loop does not exploit, and which level's traffic limits the loop.
#include <gtest/gtest.h>

#include "models/roofline/hierarchical.h"
#include "models/roofline/runtime_ceilings.h"
#include "tests/models/roofline_example.h"

namespace crosstalk::models::roofline::runtime_test {
namespace {

using namespace example;

double simd(double lanes, double share) { return simd_part(lanes, exact(share)).value().value(); }
double pipes(double a, double m) { return separate_pipes_part(exact(a), exact(m)).value().value(); }

TEST(RooflineRuntime, SourceExampleOfAppendixA3) {
  const std::vector<Estimate> parts = {exact(0.85), simd_part(2, exact(0.75)).value(),
                                       separate_pipes_part(exact(1), exact(0.65)).value()};
  const Estimate joint = joint_part(parts).value();
  expect_vectors({
      {"75 % SIMD", simd(2, 0.75), 0.875, 1e-6},
      {"65 % balance", pipes(1, 0.65), 0.825, 1e-6},
      {"joint", joint.value(), 0.61359, 5e-6},
      {"joint, computed", joint.value(), 0.61359375, 1e-9},
      {"no SIMD of two lanes", simd(2, 0), 0.5, 1e-12},
      {"all SIMD", simd(2, 1), 1, 1e-12},
      {"no SIMD of four lanes", simd(4, 0), 0.25, 1e-12},
  });
  EXPECT_EQ(joint.basis(), Basis::assumed);
}

TEST(RooflineRuntime, MultiplyAndAdd) {
  EXPECT_EQ(pipes(1, 0), 0.5);
  EXPECT_EQ(pipes(3, 3), 1);
  EXPECT_EQ(fused_part(exact(0)).value().value(), 0.5);
  EXPECT_EQ(fused_part(exact(1)).value().value(), 1);
  const Estimate balanced = separate_pipes_part(within(1, 2, 3), within(2, 2.5, 4)).value();
  EXPECT_EQ(balanced.high(), 1);  // they may be equal
  EXPECT_EQ(balanced.low(), 0.625);
  EXPECT_FALSE(separate_pipes_part(exact(0), exact(0)));
}

TEST(RooflineRuntime, TheLongerOfRecurrenceAndIssueBounds) {
  const auto rate = [](double recurrence, double issue) {
    return ilp_rate(exact(8), exact(recurrence), exact(issue), exact(giga)).value().value();
  };
  EXPECT_EQ(rate(4, 2), 2 * giga);
  EXPECT_EQ(rate(1, 2), 4 * giga);
  EXPECT_EQ(rate(0, 2), 4 * giga);  // no dependence between iterations
  EXPECT_FALSE(ilp_rate(exact(8), exact(0), exact(0), exact(giga)));
}

LoopPoint counted_loop() {
  LoopPoint point;
  point.fp_instructions = exact(8);
  point.simd_instructions = exact(4);
  point.fma_instructions = exact(8);
  return point;
}

TEST(RooflineRuntime, CostsAreInOrderWithTheirProductLast) {
  const auto costs = feature_costs(counted_loop(), compute(64), 4, MultiplyAdd::fused, exact(32)).value();
  ASSERT_EQ(costs.size(), 4U);
  EXPECT_EQ(costs[0].feature, Feature::independent_operations);
  EXPECT_EQ(costs[0].cost.value(), 2);
  EXPECT_EQ(costs[1].feature, Feature::vectors);
  EXPECT_EQ(costs[1].ceiling.value(), 40);
  EXPECT_EQ(costs[1].cost.value(), 1.6);
  EXPECT_EQ(costs[2].cost.value(), 1);
  EXPECT_EQ(costs[3].feature, Feature::all);
  EXPECT_EQ(costs[3].ceiling.value(), 20);
  EXPECT_EQ(costs[3].ceiling.basis(), Basis::assumed);
}

TEST(RooflineRuntime, WhatIsNotKnownHasNoCost) {
  LoopPoint point = counted_loop();
  point.fma_instructions = unknown("fused multiply-adds");
  EXPECT_EQ(feature_costs(point, compute(64), 4, MultiplyAdd::fused).value().size(), 1U);
  point.simd_instructions = unknown("vector instructions");
  EXPECT_EQ(feature_costs(point, compute(64), 4, MultiplyAdd::fused).error().message,
            "the loop's vector instructions are not known");
  LoopPoint wrong = counted_loop();
  wrong.simd_instructions = exact(9);
  wrong.fma_instructions = exact(9);
  EXPECT_FALSE(feature_costs(wrong, compute(64), 4, MultiplyAdd::fused));
}

TEST(RooflineRuntime, AdviceByKindOfMiss) {
  EXPECT_EQ(memory_advice({.compulsory = 0.95, .capacity = 0.03, .conflict = 0.02}).value(), std::vector<Advice>{});
  EXPECT_EQ(memory_advice({.compulsory = 0.1, .capacity = 0.3, .conflict = 0.6}).value(),
            (std::vector{Advice::pad_arrays, Advice::block_for_cache}));
  EXPECT_EQ(memory_advice({.controller_balance = 0.5, .idle_queues = 0.7}).value(),
            (std::vector{Advice::prefetch, Advice::affinity}));
  EXPECT_EQ(memory_advice({}).value(), std::vector<Advice>{});
  EXPECT_FALSE(memory_advice({.capacity = 1.5}));
}

TEST(RooflineRuntime, ControllersOutOfBalance) {
  const std::vector<double> all_at_one = {100, 0};
  EXPECT_EQ(controller_balance_ceiling(bandwidth(Level::memory, 20), all_at_one).value().height.value(), 10);
  EXPECT_FALSE(controller_balance_ceiling(bandwidth(Level::memory, 20), {}));
}

TEST(RooflineRuntime, HostileNumbersStayFiniteOrAreRefused) {
  with_hostile_numbers(3, [](const std::vector<double>& x) {
    expect_sane(simd_part(x[0], exact(0.5)));
    expect_sane(controller_balance_ceiling(bandwidth(Level::memory, 20), x));
    if (const auto advice = memory_advice({.compulsory = x[0], .capacity = x[1], .idle_queues = x[2]}); !advice) {
      expect_reason(advice.error());
    }
  });
  with_extreme_estimates(4, [](const std::vector<Estimate>& x) {
    expect_sane(simd_part(4, x[0]));
    expect_sane(fused_part(x[0]));
    expect_sane(separate_pipes_part(x[0], x[1]));
    expect_sane(joint_part(std::span(x).first(2)));
    expect_sane(ilp_rate(x[0], x[1], x[2], x[3]));
    LoopPoint point;
    point.fp_instructions = x[0];
    point.simd_instructions = x[1];
    point.fma_instructions = x[2];
    if (const auto costs = feature_costs(point, compute(1), 8, MultiplyAdd::fused, x[3])) {
      for (const FeatureCost& cost : *costs) {
        expect_sane(cost.ceiling);
        expect_sane(cost.cost);
      }
    } else {
      expect_reason(costs.error());
    }
  });
  EXPECT_FALSE(joint_part({}));
}

// ---- hierarchical and integrated ----------------------------------------------------------------------------

const std::vector<Roof> levels = {bandwidth(Level::l1d, 100), bandwidth(Level::l2, 50), bandwidth(Level::memory, 10)};

LoopPoint traffic(double core, double l2, double memory) {
  LoopPoint point;
  point.flops = exact(10);
  point.bytes_core = exact(core);
  point.bytes_l2 = exact(l2);
  point.bytes_memory = exact(memory);
  point.cpu_s = exact(10);
  return point;
}

TEST(RooflineHierarchical, TheLeastBoundIsTheBottleneck) {
  const auto at_l2 = hierarchical_verdict(levels, compute(20), traffic(100, 100, 10)).value();
  EXPECT_EQ(at_l2.bottleneck, Level::l2);  // bounds 10, 5, 10
  EXPECT_EQ(at_l2.bound.value().value(), 5);
  EXPECT_EQ(at_l2.gain_bound.value().value(), 5);  // it runs at 1
  EXPECT_EQ(at_l2.region, Region::memory);
  EXPECT_EQ(at_l2.points[2].intensity.value().value(), 1);
  EXPECT_EQ(at_l2.undecided, "");
  const auto at_memory = hierarchical_verdict(levels, compute(20), traffic(100, 100, 80)).value();
  EXPECT_EQ(at_memory.bottleneck, Level::memory);
  const auto at_peak = hierarchical_verdict(levels, compute(2), traffic(100, 100, 10)).value();
  EXPECT_EQ(at_peak.bottleneck, std::nullopt);
  EXPECT_EQ(at_peak.region, Region::compute);
  EXPECT_EQ(at_peak.bound.value().value(), 2);
}

TEST(RooflineHierarchical, ALoopAboveItsBoundHasNoGain) {
  LoopPoint fast = traffic(100, 100, 10);
  fast.cpu_s = exact(1);  // 10 flop/s, twice the bound
  EXPECT_FALSE(hierarchical_verdict(levels, compute(20), fast).value().gain_bound);
  fast.cpu_s = unknown("seconds of CPU time");
  EXPECT_EQ(hierarchical_verdict(levels, compute(20), fast).value().gain_bound.error().message,
            "the loop's seconds of CPU time are not known");
}

TEST(RooflineHierarchical, ALevelWithoutTrafficDoesNotBound) {
  const auto verdict = hierarchical_verdict(levels, compute(20), traffic(100, 100, 0)).value();
  EXPECT_EQ(verdict.bottleneck, Level::l2);
  EXPECT_FALSE(verdict.points[2].intensity);
  EXPECT_EQ(verdict.points[2].bound.value().value(), 20);
}

TEST(RooflineHierarchical, UndecidedWhereIntervalsOverlapOrTrafficIsUnknown) {
  LoopPoint wide = traffic(100, 100, 20);
  wide.bytes_memory = within(10, 19, 30);
  EXPECT_EQ(hierarchical_verdict(levels, compute(20), wide).value().undecided,
            "the intervals of the lowest bounds overlap");
  wide.bytes_memory = unknown("bytes from memory");
  const auto partly = hierarchical_verdict(levels, compute(20), wide).value();
  EXPECT_EQ(partly.undecided, "the traffic from memory is not known and may limit more");
  EXPECT_EQ(partly.bound.value().value(), 5);
  EXPECT_EQ(partly.bottleneck, std::nullopt);
  LoopPoint nothing;
  nothing.flops = exact(1);
  EXPECT_EQ(hierarchical_verdict(levels, compute(20), nothing).value().undecided, "no level's traffic is known");
  EXPECT_FALSE(hierarchical_verdict(levels, compute(20), LoopPoint{}));
  EXPECT_FALSE(hierarchical_verdict({}, compute(20), nothing));
}

TEST(RooflineHierarchical, ExtremesStayFinite) {
  with_extreme_estimates(4, [](const std::vector<Estimate>& x) {
    LoopPoint point = traffic(1, 1, 1);
    point.flops = x[0];
    point.bytes_core = x[1];
    point.bytes_memory = x[2];
    point.cpu_s = x[3];
    if (const auto verdict = hierarchical_verdict(levels, compute(20), point)) {
      expect_sane(verdict->bound);
      expect_sane(verdict->gain_bound);
      for (const LevelPoint& level : verdict->points) {
        expect_sane(level.intensity);
        expect_sane(level.bound);
      }
    } else {
      expect_reason(verdict.error());
    }
  });
}

}  // namespace
}  // namespace crosstalk::models::roofline::runtime_test
