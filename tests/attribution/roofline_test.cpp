// SPDX-License-Identifier: Apache-2.0
#include "attribution/roofline/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/roofline/machine_roofs.h"
#include "tests/attribution/roofline_example.h"

namespace crosstalk::attribution::roofline_test {
namespace {

using models::roofline::Advice;
using models::roofline::Basis;
using models::roofline::Estimate;

Analysis with(std::vector<LoopRow> loops) {
  Analysis analysis;
  analysis.loops = std::move(loops);
  for (const LoopRow& loop : analysis.loops) {
    analysis.cpu_s += loop.self_s;
  }
  return analysis;
}

Roofline placed(const Analysis& analysis, RooflineModel model = RooflineModel::carm,
                const RooflineOptions& options = {}) {
  return roofline_of(analysis, test::roofline_machine(), model, options);
}

const RooflinePlace& place(const Roofline& roofline, RooflineModel model, std::size_t loop = 0) {
  const auto& found = roofline.loops.at(loop).place(model);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  return *found;
}
const Estimate& intensity(const Roofline& roofline) { return place(roofline, RooflineModel::carm).points[0].x; }
const Estimate& performance(const Roofline& roofline) { return place(roofline, RooflineModel::carm).points[0].y; }

// 2 operations on 24 bytes, as a triad: at 10 GB/s 0.833 Gflop/s.
TEST(Roofline, AStreamIsAtTheRoofOfMemory) {
  const Analysis analysis = with({test::roofline_loop(1, 2, 24, 10e9 / 24)});
  const Roofline roofline = placed(analysis);
  ASSERT_EQ(roofline.loops.size(), 1U);
  EXPECT_DOUBLE_EQ(intensity(roofline).value(), 2.0 / 24);
  EXPECT_EQ(intensity(roofline).low(), intensity(roofline).high()) << "iterations cancel";
  EXPECT_EQ(intensity(roofline).basis(), Basis::decoded);
  EXPECT_NEAR(performance(roofline).value(), 2 * 10e9 / 24, 1);
  EXPECT_LT(performance(roofline).low(), performance(roofline).value());
  const auto& carm = place(roofline, RooflineModel::carm).verdict;
  ASSERT_EQ(carm.reached.size(), 1U);
  EXPECT_EQ(carm.reached[0].name, "memory");
  for (const RooflineModel model : {RooflineModel::irm, RooflineModel::hierarchical}) {
    EXPECT_EQ(place(roofline, model).bottleneck, models::Level::memory);
    EXPECT_EQ(place(roofline, model).points.size(), 4U) << "a point for each level";
  }
  const auto& orm = place(roofline, RooflineModel::orm);
  ASSERT_EQ(orm.verdict.reached.size(), 1U);
  EXPECT_EQ(orm.verdict.reached[0].name, "memory");
}

TEST(Roofline, BetweenRoofsBothAreNamed) {
  const Roofline roofline = placed(with({test::roofline_loop(1, 2, 24, 70e9 / 24)}));
  ASSERT_EQ(roofline.loops.size(), 1U);
  const models::roofline::Verdict& carm = place(roofline, RooflineModel::carm).verdict;
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
  for (const RooflineModel model : {RooflineModel::carm, RooflineModel::irm}) {
    const auto& verdict = place(roofline, model).verdict;
    ASSERT_FALSE(verdict.advice.empty());
    EXPECT_EQ(std::count(verdict.advice.begin(), verdict.advice.end(), Advice::vectorise), 0) << "all of it is vectors";
    EXPECT_EQ(std::count(verdict.advice.begin(), verdict.advice.end(), Advice::thread), 0) << "there is one core";
    EXPECT_EQ(verdict.advice[0], Advice::independent_operations);
  }
}

TEST(Roofline, TheOriginalModelHasCeilings) {
  models::Machine machine = test::roofline_machine();
  machine.flops.push_back({models::Width::scalar, models::Precision::double_precision, models::Operation::add,
                           models::Scope::one_core, machine.flops[0].flops_per_s});
  machine.flops.back().flops_per_s.value = 6e9;
  const Analysis analysis = with({test::roofline_loop(1, 64, 8, 20e9 / 64)});
  const Roofline roofline = roofline_of(analysis, machine, RooflineModel::orm);
  ASSERT_EQ(roofline.loops.size(), 1U);
  const RooflinePlace& orm = place(roofline, RooflineModel::orm);
  ASSERT_TRUE(orm.verdict.below && orm.verdict.above);
  EXPECT_EQ(orm.verdict.below->name, "scalar add");
  EXPECT_EQ(orm.verdict.above->name, "AVX2 FMA");
}

TEST(Roofline, FeaturesCostWhatTheLoopLacks) {
  LoopRow loop = test::roofline_loop(1, 2, 8, 1e9);
  auto figures = std::make_shared<LoopFigures>(*loop.figures);
  figures->flops = models::FlopMix{};
  figures->flops->add(models::Width::scalar, models::Precision::double_precision, models::Operation::add, 2e9);
  loop.figures = figures;
  models::Machine machine = test::roofline_machine();
  machine.flops.push_back({models::Width::scalar, models::Precision::double_precision, models::Operation::add,
                           models::Scope::one_core, machine.flops[0].flops_per_s});
  machine.flops.back().flops_per_s.value = 6e9;
  const Analysis analysis = with({loop});
  const Roofline roofline = roofline_of(analysis, machine, RooflineModel::runtime);
  ASSERT_EQ(roofline.loops.size(), 1U);
  const auto& costs = place(roofline, RooflineModel::runtime).costs;
  ASSERT_EQ(costs.size(), 3U);
  EXPECT_EQ(costs[0].feature, models::roofline::Feature::vectors);
  EXPECT_DOUBLE_EQ(costs[0].cost.value(), 4) << "lanes of the peak's vectors";
  EXPECT_DOUBLE_EQ(costs[1].cost.value(), 2) << "nothing is fused";
  EXPECT_DOUBLE_EQ(costs[2].cost.value(), 8) << "together";
}

TEST(Roofline, OperationsAreCountedByKind) {
  LoopRow loop = test::roofline_loop(1, 12, 24, 1e9);
  auto figures = std::make_shared<LoopFigures>(*loop.figures);
  figures->flops->add(models::Width::avx2, models::Precision::single_precision, models::Operation::fma, 12e9);
  loop.rates.flops = {24e9, Interval{23.9e9, 24.1e9}, "", 0, false};
  loop.figures = figures;
  const Analysis analysis = with({loop});
  const Roofline doubles = placed(analysis, RooflineModel::carm, {CountedOperations::fp64});
  ASSERT_EQ(doubles.loops.size(), 1U);
  EXPECT_DOUBLE_EQ(intensity(doubles).value(), 0.5);
  const Roofline integers = placed(analysis, RooflineModel::carm, {CountedOperations::integer});
  ASSERT_EQ(integers.unplaced.size(), 1U);
  EXPECT_EQ(integers.unplaced[0].why, "its operations on whole numbers cannot be counted in its code");
  const Roofline none =
      placed(with({test::roofline_loop(1, 12, 24, 1e9)}), RooflineModel::carm, {CountedOperations::fp32});
  ASSERT_EQ(none.unplaced.size(), 1U);
  EXPECT_EQ(none.unplaced[0].why, "it does no operation in single precision");
}

TEST(Roofline, WholeNumbersHaveARoof) {
  LoopRow loop = test::roofline_loop(1, 0, 16, 1e9);
  auto figures = std::make_shared<LoopFigures>(*loop.figures);
  figures->body.emplace();
  figures->body->integers.add({2, symbolizer::FlopWidth::scalar});
  loop.figures = figures;
  models::Machine machine = test::roofline_machine();
  machine.instructions = {{models::Instruction::integer_add, machine.flops[0].flops_per_s}};
  const Roofline roofline = roofline_of(with({loop}), machine, RooflineModel::carm, {CountedOperations::integer});
  ASSERT_EQ(roofline.loops.size(), 1U);
  EXPECT_DOUBLE_EQ(intensity(roofline).value(), 2.0 / 16);
  EXPECT_DOUBLE_EQ(place(roofline, RooflineModel::carm).roofs.back().height.value(), 48e9);
}

/// Shares of one loop by thread: 4:1:1:1.
LoopRow unbalanced() {
  LoopRow loop = test::roofline_loop(1, 64, 8, 20e9 / 64, 7);
  for (std::uint32_t thread = 0; thread < 4; ++thread) {
    const double cpu_s = thread == 0 ? 4 : 1;
    loop.threads.push_back(
        {thread, cpu_s, cpu_s, 0, 0, (thread == 0 ? 10e9 : 20e9) / 64, Interval{9e9 / 64, 21e9 / 64}});
  }
  auto figures = std::make_shared<LoopFigures>(*loop.figures);
  figures->threads = 1.75;
  loop.figures = figures;
  return loop;
}

models::Machine of_four_cores() {
  models::Machine machine = test::roofline_machine();
  machine.processors = {{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 0, 0}, {3, 3, 0, 0}};
  for (models::Bandwidth& of : std::vector(machine.bandwidths)) {
    of.scope = models::Scope::all_cores;
    machine.bandwidths.push_back(of);
  }
  machine.flops.push_back(machine.flops[0]);
  machine.flops.back().scope = models::Scope::all_cores;
  machine.flops.back().flops_per_s.value = 4 * 48e9;
  return machine;
}

TEST(Roofline, ImbalanceIsNamedFirst) {
  const Analysis analysis = with({unbalanced()});
  const Roofline roofline = roofline_of(analysis, of_four_cores(), RooflineModel::orm);
  ASSERT_EQ(roofline.loops.size(), 1U);
  const LoopWork& work = roofline.loops[0].work;
  EXPECT_DOUBLE_EQ(work.at_work, 1.75);
  EXPECT_EQ(work.members, 4U);
  EXPECT_NEAR(place(roofline, RooflineModel::orm).points[0].y.value(), 1.75 * 20e9, 1);
  const auto& roofs = place(roofline, RooflineModel::orm).roofs;
  const auto balance = std::find_if(
      roofs.begin(), roofs.end(), [](const auto& roof) { return roof.ceiling == models::roofline::Ceiling::balance; });
  ASSERT_NE(balance, roofs.end());
  EXPECT_DOUBLE_EQ(balance->height.value(), 4 * 48e9 * 1.75 / 4);
  for (const RooflineModel model : all_roofline_models) {
    if (const auto& at = roofline.loops[0].place(model)) {
      ASSERT_FALSE(at->verdict.advice.empty());
      EXPECT_EQ(at->verdict.advice[0], Advice::balance_load);
    }
  }
  RooflineOptions ladder;
  ladder.imbalance = models::roofline::ImbalanceOrder::last;
  const Roofline drawn = roofline_of(analysis, of_four_cores(), RooflineModel::orm, ladder);
  EXPECT_EQ(place(drawn, RooflineModel::orm).roofs.size(), roofs.size() + 2) << "1/2 and 1/4 of the threads";
}

TEST(Roofline, ThreadsOfALoopHavePlacesOfTheirOwn) {
  RooflineOptions options;
  options.by_thread = true;
  LoopRow loop = unbalanced();
  loop.threads[3].iterations_per_s.reset();
  const Analysis analysis = with({loop});
  const Roofline roofline = roofline_of(analysis, of_four_cores(), RooflineModel::carm, options);
  ASSERT_EQ(roofline.loops.size(), 3U);
  EXPECT_EQ(roofline.loops[0].work.thread->thread, 0U) << "by time";
  EXPECT_NEAR(performance(roofline).value(), 10e9, 1);
  EXPECT_DOUBLE_EQ(place(roofline, RooflineModel::carm).roofs.back().height.value(), 48e9) << "one thread's part";
  ASSERT_EQ(roofline.unplaced.size(), 1U);
  EXPECT_NE(roofline.unplaced[0].why.find("too few samples"), std::string::npos);
}

TEST(Roofline, RoofsOfAnotherNumberOfThreads) {
  RooflineOptions options;
  options.threads = 4;
  const Analysis analysis = with({test::roofline_loop(1, 64, 8, 20e9 / 64)});
  const Roofline roofline = roofline_of(analysis, of_four_cores(), RooflineModel::carm, options);
  ASSERT_EQ(roofline.loops.size(), 1U);
  EXPECT_DOUBLE_EQ(place(roofline, RooflineModel::carm).roofs.back().height.value(), 4 * 48e9);
}

TEST(Roofline, GatheredElementsComeFromMemoryOrACache) {
  LoopRow loop = test::roofline_loop(1, 2, 20, 1e9);
  auto figures = std::make_shared<LoopFigures>(*loop.figures);
  figures->per_s[models::Unit::memory].reset();
  figures->reasons[models::Unit::memory] = "its addresses are loaded";
  figures->body.emplace();
  figures->body->one_way = true;
  figures->body->access_bytes = 20;
  figures->body->indirect = true;
  figures->body->indirect_elements = 1;
  figures->body->indirect_bytes = 8;
  loop.figures = figures;
  const Roofline roofline = placed(with({loop}), RooflineModel::orm);
  ASSERT_EQ(roofline.loops.size(), 1U);
  const RooflinePlace& orm = place(roofline, RooflineModel::orm);
  ASSERT_TRUE(orm.gathers);
  EXPECT_DOUBLE_EQ(orm.gathers->best, 2.0 / 12);
  EXPECT_DOUBLE_EQ(orm.gathers->worst, 2.0 / 76);
  EXPECT_DOUBLE_EQ(orm.points[0].x.low(), 2.0 / 76);
  EXPECT_DOUBLE_EQ(orm.points[0].x.high(), 2.0 / 12);
}

TEST(Roofline, GathersOfUnknownMasksAreABracket) {
  LoopRow loop = test::roofline_loop(1, 8, 20, 1e9);
  auto figures = std::make_shared<LoopFigures>(*loop.figures);
  figures->body.emplace();
  figures->body->gathers = 1;
  figures->body->access_bytes = 48;
  figures->body->gathered_bytes = 32;
  loop.figures = figures;
  loop.rates.bytes = {std::nullopt, std::nullopt, "an instruction's amount depends on its data"};
  const Roofline roofline = placed(with({loop}));
  ASSERT_EQ(roofline.loops.size(), 1U);
  EXPECT_DOUBLE_EQ(intensity(roofline).low(), 8.0 / 80);
  EXPECT_DOUBLE_EQ(intensity(roofline).high(), 8.0 / 48);
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

/// A machine with the figures of all models.
models::Machine whole_machine() {
  models::Machine machine = test::roofline_machine();
  const auto figure = [&](double value) {
    models::Figure of = machine.flops[0].flops_per_s;
    of.value = value;
    return of;
  };
  machine.frequency.one_core_hz = figure(3e9);
  machine.kinds = {{models::Kind::nop, figure(4), figure(224)},
                   {models::Kind::integer_add, figure(4), figure(140)},
                   {models::Kind::avx2, figure(2), figure(132)}};
  for (const auto& [level, rate] : {std::pair{models::Level::l1d, 2.0},
                                    {models::Level::l2, 1.0},
                                    {models::Level::l3, 0.5},
                                    {models::Level::memory, 0.1}}) {
    machine.groups.push_back({level, models::Width::avx2, 0, figure(rate)});
    machine.groups.push_back({level, models::Width::avx2, 12, figure(rate / 2)});
    const auto fillers = static_cast<std::uint32_t>(3 * 4 / rate);
    machine.ridges.push_back({level, models::Width::avx2, models::Kind::integer_add, fillers, figure(0.75 * rate)});
  }
  machine.sparse_roofs = {{models::Level::l2, models::Level::l1d, models::Scope::one_core, 64, figure(20e9)},
                          {models::Level::memory, models::Level::l1d, models::Scope::one_core, 64, figure(8e9)}};
  machine.sparse_bands = {
      {models::Level::memory, 64, models::Scope::one_core, 4096, 2048, figure(0.5e9), figure(0.8e9)}};
  return machine;
}

TEST(Roofline, AMansardPlaceNeedsNoOperations) {
  LoopRow loop = test::roofline_loop(1, 0, 64, 1e9);
  loop.rates.instructions = {6e9, Interval{5.9e9, 6.1e9}, "", 0, false};
  loop.rates.loads = {2e9, Interval{1.9e9, 2.1e9}, "", 0, false};
  loop.rates.stores = {0.0, Interval{0, 0}, "", 0, false};
  const Analysis analysis = with({loop});
  const Roofline roofline = roofline_of(analysis, whole_machine(), RooflineModel::mansard);
  ASSERT_EQ(roofline.loops.size(), 1U) << (roofline.unplaced.empty() ? "" : roofline.unplaced[0].why);
  const RooflinePlace& mansard = place(roofline, RooflineModel::mansard);
  EXPECT_DOUBLE_EQ(mansard.points[0].x.value(), 2);
  EXPECT_DOUBLE_EQ(mansard.points[0].y.value(), 2) << "6 instructions in 3 cycles";
  ASSERT_TRUE(mansard.hills);
  EXPECT_EQ(mansard.hills->hills().size(), 4U);
  const auto& near = mansard.hills->hills()[0];
  EXPECT_DOUBLE_EQ(near.memory_most.value(), 2);
  EXPECT_DOUBLE_EQ(near.memory_at_ridge.value(), 1.5) << "what was measured at the ridge";
  EXPECT_FALSE(roofline.loops[0].place(RooflineModel::carm)) << "it does no operation";
}

TEST(Roofline, LoopsThatGatherHaveASparsePlace) {
  LoopRow loop = test::roofline_loop(1, 2, 20, 0.3e9);
  auto figures = std::make_shared<LoopFigures>(*loop.figures);
  figures->body.emplace();
  figures->body->access_bytes = 20;
  figures->body->indirect_elements = 1;
  figures->body->indirect_bytes = 8;
  loop.figures = figures;
  const Analysis analysis = with({loop, test::roofline_loop(2, 2, 24, 1e9)});
  const Roofline roofline = roofline_of(analysis, whole_machine(), RooflineModel::sparse);
  ASSERT_EQ(roofline.loops.size(), 1U) << "the other one gathers nothing";
  const RooflinePlace& sparse = place(roofline, RooflineModel::sparse);
  EXPECT_EQ(sparse.roofs.front().name, "A in L2, X in L1D");
  ASSERT_TRUE(sparse.band);
  EXPECT_EQ(sparse.band->verdict.position, models::roofline::BandPosition::inside);
  EXPECT_EQ(sparse.verdict.advice[0], Advice::reorder_matrix);
}

TEST(Roofline, ALoopStandsForInnerOnesThatStayInRegisters) {
  LoopRow outer = test::roofline_loop(1, 16, 16, 1e8, 10);
  outer.self_s = 1;
  LoopRow inner = test::roofline_loop(2, 2, 0, 8e8, 9);
  inner.parent = 1;
  inner.depth = 2;
  const Roofline roofline = placed(with({outer, inner}));
  ASSERT_EQ(roofline.loops.size(), 1U);
  EXPECT_DOUBLE_EQ(intensity(roofline).value(), 1);
  EXPECT_DOUBLE_EQ(roofline.placed_s, 10);
  EXPECT_TRUE(roofline.unplaced.empty());
  LoopRow with_bytes = test::roofline_loop(2, 2, 16, 8e8, 9);
  with_bytes.parent = 1;
  with_bytes.depth = 2;
  const Roofline inside = placed(with({outer, with_bytes}));
  ASSERT_EQ(inside.loops.size(), 1U) << "the inner one has a place";
  EXPECT_DOUBLE_EQ(intensity(inside).value(), 2.0 / 16);
}

TEST(Roofline, CoresOfSeveralKindsAreTold) {
  models::Machine machine = of_four_cores();
  machine.caches = {{1, 49152, 64, 12, {0, 1}}, {1, 32768, 64, 8, {2, 3}}};
  Analysis analysis = with({test::roofline_loop(1, 2, 24, 1e9)});
  analysis.processors = {{0, 1.0, 100, 0}, {1, 1.0, 100, 0}};
  EXPECT_TRUE(roofline_of(analysis, machine).notes.empty()) << "the program ran on one kind";
  analysis.processors.push_back({2, 1.0, 100, 0});
  const Roofline roofline = roofline_of(analysis, machine);
  ASSERT_EQ(roofline.notes.size(), 1U);
  EXPECT_NE(roofline.notes[0].find("cores of 2 kinds"), std::string::npos);
}

TEST(Roofline, FiguresThatTheCalibrationLacksAreNamed) {
  const Analysis analysis = with({test::roofline_loop(1, 2, 24, 1e9)});
  const Roofline roofline = placed(analysis, RooflineModel::mansard);
  ASSERT_EQ(roofline.unplaced.size(), 1U);
  EXPECT_FALSE(roofline.unplaced[0].why.empty());
}

TEST(Roofline, WithoutFiguresOfTheMachineNothingHasAPlace) {
  const Roofline roofline = roofline_of(with({test::roofline_loop(1, 2, 24, 1e9)}), {});
  EXPECT_TRUE(roofline.loops.empty());
  ASSERT_EQ(roofline.unplaced.size(), 1U);
  EXPECT_FALSE(roofline.unplaced[0].why.empty());
}

}  // namespace
}  // namespace crosstalk::attribution::roofline_test
