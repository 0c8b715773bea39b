// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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
  const std::vector<Roof> roofs = load_roofs(machine(), 1);
  ASSERT_EQ(roofs.size(), 2U);
  EXPECT_EQ(roofs[0].name, "L1D");
  EXPECT_EQ(roofs[1].level, Level::memory);
  EXPECT_DOUBLE_EQ(roofs[1].height.value(), 20e9) << "by loads, not by the triad";
  EXPECT_DOUBLE_EQ(roofs[1].height.low(), 18e9);
  EXPECT_DOUBLE_EQ(roofs[1].height.high(), 22e9);
}

TEST(MachineRoofs, OneOfSeveralThreadsHasItsPart) {
  const std::vector<Roof> roofs = load_roofs(machine(), 2);
  EXPECT_DOUBLE_EQ(roofs[0].height.value(), 200e9);
  EXPECT_DOUBLE_EQ(roofs[1].height.value(), 15e9);
  EXPECT_EQ(roofs[1].threads, 2U);
}

TEST(MachineRoofs, TheUnitsOfAMixTakeItsKindsInTurn) {
  FlopMix mix;
  mix.add(Width::avx2, Precision::double_precision, Operation::fma, 8);
  mix.add(Width::scalar, Precision::double_precision, Operation::add, 1);
  const auto roof = compute_roof(machine(), mix, 1);
  ASSERT_TRUE(roof) << roof.error().message;
  EXPECT_NEAR(roof->height.value(), 9 / (8 / 48e9 + 1 / 6e9), 1);
  EXPECT_FALSE(compute_roof(machine(), {}, 1));
  mix.add(Width::sse, Precision::single_precision, Operation::mul, 5);
  EXPECT_FALSE(compute_roof(machine(), mix, 1)) << "nothing is measured of that kind";
}

TEST(MachineRoofs, WidthsHaveTheirBestOperation) {
  const std::vector<Roof> roofs = width_roofs(machine(), Precision::double_precision, 1);
  ASSERT_EQ(roofs.size(), 2U);
  EXPECT_EQ(roofs[0].name, "scalar add");
  EXPECT_EQ(roofs[1].name, "AVX2 FMA");
  EXPECT_TRUE(width_roofs(machine(), Precision::single_precision, 1).empty());
}

TEST(MachineRoofs, AMachineWithoutFiguresHasNone) {
  EXPECT_TRUE(load_roofs({}, 1).empty());
  EXPECT_TRUE(load_roofs(machine(), 0).size() == 2) << "fewer threads than one are one";
}

}  // namespace
}  // namespace crosstalk::models::roofline::roofline_machine_test
