// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "models/roofline/machine_roofs.h"

namespace crosstalk::models::roofline::roofline_machine_test {
namespace {

Figure measured(double value, double spread = 0) {
  Figure figure;
  figure.value = value;
  figure.tries = 5;
  figure.spread = spread;
  return figure;
}

/// Two cores; memory gives one of them 20 GB/s and both 30.
Machine machine() {
  Machine m;
  m.processors = {{0, 0, 0, 0}, {1, 1, 0, 0}};
  m.bandwidths = {{Level::memory, Traffic::load, Scope::one_core, measured(20e9, 0.1)},
                  {Level::memory, Traffic::load, Scope::all_cores, measured(30e9)},
                  {Level::memory, Traffic::triad, Scope::one_core, measured(25e9)},
                  {Level::l1d, Traffic::load, Scope::one_core, measured(200e9)},
                  {Level::l1d, Traffic::load, Scope::all_cores, measured(400e9)}};
  const auto wide = Width::avx2;
  const auto real8 = Precision::double_precision;
  m.flops = {{wide, real8, Operation::fma, Scope::one_core, measured(48e9)},
             {wide, real8, Operation::fma, Scope::all_cores, measured(96e9)},
             {Width::scalar, real8, Operation::add, Scope::one_core, measured(6e9)},
             {Width::scalar, real8, Operation::add, Scope::all_cores, measured(12e9)}};
  return m;
}

TEST(MachineRoofs, LevelsThatWereMeasuredNearestFirst) {
  const std::vector<Roof> roofs = moved_roofs(machine(), {}, {1});
  ASSERT_EQ(roofs.size(), 2U);
  EXPECT_EQ(roofs[0].name, "L1D");
  EXPECT_EQ(roofs[1].level, Level::memory);
  EXPECT_DOUBLE_EQ(roofs[1].height.value(), 20e9) << "by loads, not by the triad";
  EXPECT_DOUBLE_EQ(roofs[1].height.low(), 18e9);
  EXPECT_DOUBLE_EQ(roofs[1].height.high(), 22e9);
}

TEST(MachineRoofs, ThreadsHaveThemTogetherOrInParts) {
  const std::vector<Roof> together = moved_roofs(machine(), {}, {2});
  EXPECT_DOUBLE_EQ(together[0].height.value(), 400e9);
  EXPECT_DOUBLE_EQ(together[1].height.value(), 30e9);
  EXPECT_EQ(together[1].threads, 2U);
  const std::vector<Roof> part = moved_roofs(machine(), {}, {2, true});
  EXPECT_DOUBLE_EQ(part[0].height.value(), 200e9);
  EXPECT_DOUBLE_EQ(part[1].height.value(), 15e9);
  EXPECT_EQ(part[1].threads, 1U);
  EXPECT_DOUBLE_EQ(moved_roofs(machine(), {}, {64})[1].height.value(), 30e9) << "no more than all cores";
}

TEST(MachineRoofs, AMixOfLoadsAndStoresHasItsOwnRoof) {
  AccessKind triad;
  triad.store_share = 1.0 / 3;
  EXPECT_DOUBLE_EQ(moved_roofs(machine(), triad, {1})[1].height.value(), 25e9);
  EXPECT_DOUBLE_EQ(requested_roofs(machine(), triad, {1})[1].height.value(), 25e9 * 3 / 4) << "its store moves twice";
  EXPECT_DOUBLE_EQ(requested_roofs(machine(), triad, {1})[0].height.value(), 200e9)
      << "by loads: nothing else is known";
}

/// Four cores, with roofs by width and by number of threads.
Machine extended() {
  Machine m = machine();
  m.processors = {{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 0, 0}, {3, 3, 0, 0}};
  for (const auto& [threads, rate] : {std::pair{1U, 10e9}, {2U, 18e9}, {4U, 22e9}}) {
    m.accesses.push_back({Level::memory, Width::avx2, Mix::loads, threads, measured(rate)});
  }
  m.accesses.push_back({Level::l1d, Width::scalar, Mix::loads, 1, measured(40e9)});
  m.accesses.push_back({Level::l1d, Width::avx2, Mix::loads, 1, measured(160e9)});
  m.integers = {{Width::avx2, Element::int32, Operation::add, Scope::one_core, measured(64e9)}};
  m.flop_latencies = {{Width::scalar, Precision::double_precision, Operation::add, measured(1e-9)}};
  return m;
}

TEST(MachineRoofs, WidthAndThreadsChooseTheRoof) {
  AccessKind scalar;
  scalar.width = Width::scalar;
  EXPECT_DOUBLE_EQ(requested_roofs(extended(), scalar, {1})[0].height.value(), 40e9);
  EXPECT_DOUBLE_EQ(requested_roofs(extended(), {}, {1})[0].height.value(), 160e9);
  const auto memory = [](std::uint32_t threads) { return requested_roofs(extended(), {}, {threads}).back(); };
  EXPECT_DOUBLE_EQ(memory(2).height.value(), 18e9);
  EXPECT_EQ(memory(2).height.basis(), Basis::calibrated);
  EXPECT_DOUBLE_EQ(memory(3).height.value(), 20e9);
  EXPECT_EQ(memory(3).height.basis(), Basis::modelled) << "between two measured ones";
}

TEST(MachineRoofs, IntegersHaveTheirs) {
  const IntegerWork words{Width::avx2, 4, false, 8};
  EXPECT_DOUBLE_EQ(integer_roof(extended(), std::vector{words}, {1})->height.value(), 64e9);
  const IntegerWork bytes{Width::avx2, 1, false, 32};
  const auto roof = integer_roof(extended(), std::vector{bytes}, {1});
  ASSERT_TRUE(roof);
  EXPECT_DOUBLE_EQ(roof->height.value(), 256e9);
  EXPECT_EQ(roof->height.basis(), Basis::assumed);
  EXPECT_FALSE(integer_roof(machine(), std::vector{words}, {1}));
  EXPECT_FALSE(integer_roof(extended(), {}, {1}));
}

TEST(MachineRoofs, CeilingsAscend) {
  const std::vector<Roof> roofs = in_core_roofs(extended(), Precision::double_precision, {1});
  ASSERT_EQ(roofs.size(), 3U);
  EXPECT_EQ(roofs[0].ceiling, Ceiling::tlp);
  EXPECT_DOUBLE_EQ(roofs[0].height.value(), 1e9);
  EXPECT_EQ(roofs[1].ceiling, Ceiling::ilp);
  EXPECT_EQ(roofs[2].name, "AVX2 FMA");
  EXPECT_FALSE(roofs[2].ceiling) << "the roof";
  EXPECT_TRUE(in_core_roofs({}, Precision::double_precision, {1}).empty());
  const std::vector<Roof> memory = memory_ceilings(machine(), {}, {2});
  ASSERT_EQ(memory.size(), 2U);
  EXPECT_EQ(memory[0].name, "1/2 of the cores");
  EXPECT_DOUBLE_EQ(memory[1].height.value(), 30e9);
}

TEST(MachineRoofs, AMixTakesTheUnitsInTurns) {
  FlopMix mix;
  mix.add(Width::avx2, Precision::double_precision, Operation::fma, 48);
  mix.add(Width::scalar, Precision::double_precision, Operation::add, 6);
  const auto roof = compute_roof(machine(), mix, {1});
  ASSERT_TRUE(roof);
  EXPECT_DOUBLE_EQ(roof->height.value(), 27e9);
  EXPECT_DOUBLE_EQ(compute_roof(machine(), mix, {2})->height.value(), 54e9);
  EXPECT_FALSE(compute_roof(machine(), {}, {1}));
  mix.add(Width::sse, Precision::double_precision, Operation::mul, 1);
  EXPECT_FALSE(compute_roof(machine(), mix, {1})) << "nothing is measured of that kind";
}

TEST(MachineRoofs, WidthsThatWereMeasured) {
  const std::vector<Roof> roofs = width_roofs(machine(), Precision::double_precision, {1});
  ASSERT_EQ(roofs.size(), 2U);
  EXPECT_EQ(roofs[0].name, "scalar add");
  EXPECT_EQ(roofs[1].name, "AVX2 FMA");
  EXPECT_TRUE(width_roofs(machine(), Precision::single_precision, {1}).empty());
}

TEST(MachineRoofs, NothingIsMadeUp) {
  EXPECT_TRUE(moved_roofs({}, {}, {1}).empty());
  EXPECT_TRUE(requested_roofs({}, {}, {1}).empty());
  EXPECT_TRUE(sparse_roofs({}, {1}).empty());
  EXPECT_FALSE(sparse_band({}, Level::memory, {1}));
  EXPECT_FALSE(core_hz({}, 1));
  EXPECT_FALSE(estimate_of_figure(nullptr, 0));
  EXPECT_EQ(moved_roofs(machine(), {}, {0}).size(), 2U) << "fewer threads than one are one";
}

TEST(MachineRoofs, SparseOnesFastestFirst) {
  Machine m = machine();
  m.sparse_roofs = {{Level::memory, Level::l1d, Scope::one_core, 64, measured(9e9)},
                    {Level::l2, Level::l1d, Scope::one_core, 64, measured(20e9)},
                    {Level::l2, Level::l1d, Scope::all_cores, 64, measured(40e9)}};
  m.sparse_bands = {{Level::l2, 64, Scope::one_core, 4096, 2048, measured(1e9), measured(2e9)}};
  const std::vector<Roof> roofs = sparse_roofs(m, {1});
  ASSERT_EQ(roofs.size(), 2U);
  EXPECT_EQ(roofs[0].name, "A in L2, X in L1D");
  EXPECT_DOUBLE_EQ(roofs[0].height.value(), 20e9);
  EXPECT_DOUBLE_EQ(sparse_roofs(m, {2})[0].height.value(), 40e9);
  const auto band = sparse_band(m, Level::l2, {1});
  ASSERT_TRUE(band);
  EXPECT_DOUBLE_EQ(band->best.value(), 2e9);
}

}  // namespace
}  // namespace crosstalk::models::roofline::roofline_machine_test
