// SPDX-License-Identifier: Apache-2.0
// The mansard roofline: its equations agree with each other, its hills have the computed heights, its verdicts follow.
#include <gtest/gtest.h>

#include <random>

#include "models/roofline/mansard.h"
#include "tests/models/roofline_example.h"

namespace crosstalk::models::roofline::mansard_test {
namespace {

using namespace example;

constexpr double wide = 4;  // D_M

HillFigures hill(double most, double at_ridge, double other) { return {most, at_ridge, other}; }
double ipc_at(const HillFigures& figures, double intensity, double width = wide) {
  return hill_ipc(figures, intensity, width).value();
}

TEST(RooflineMansard, ComputedHeights) {
  const HillFigures far = hill(0.5, 0.25, 2), full = hill(0.5, 0.45, 2), classic = hill(1, 1, 3);
  expect_vectors({
      {"m = 0.25, AI 0", ipc_at(far, 0), 0.5, 1e-6},
      {"m = 0.25, AI 1", ipc_at(far, 1), 0.8, 1e-6},
      {"m = 0.25, AI 2", ipc_at(far, 2), 1, 1e-6},
      {"m = 0.25, AI 4", ipc_at(far, 4), 1.25, 1e-6},
      {"m = 0.25, AI 8", ipc_at(far, 8), 1.5, 1e-6},
      {"m = 0.25, AI 16", ipc_at(far, 16), 1.7, 1e-6},
      {"m = 0.45, AI 4", ipc_at(full, 4), 2.25, 1e-6},
      {"m = 0.45, AI 8", ipc_at(full, 8), 2.131579, 1e-6},
      {"m = M, AI 2", ipc_at(classic, 2), 3, 1e-6},
      {"m = M, AI 3", ipc_at(classic, 3), 4, 1e-6},
      {"m = M, AI 4", ipc_at(classic, 4), 3.75, 1e-6},
      {"clipped, AI 2", ipc_at(classic, 2, 3.5), 3, 1e-6},
      {"clipped, AI 3", ipc_at(classic, 3, 3.5), 3.5, 1e-6},
      {"clipped, AI 4", ipc_at(classic, 4, 3.5), 3.5, 1e-6},
  });
}

TEST(RooflineMansard, SourceFigures) {
  expect_vectors({
      {"in flight, rounded down", in_flight(145, 4, 3).value().instructions, 27, 1e-12},
      {"48 groups of 2 loads and a store fit 145", in_flight(145, 0, 3).value().instructions, 144, 1e-12},
      {"vector registers in use, %", 100 * 132.0 / 168, 78.6, 0.05},
      {"IPC of one of 18 cores", 18.85 / 18, 1.047, 0.0005},
      {"DRAM of 10 groups over 1", 0.9 / 0.5, 1.8, 1e-12},
      {"No Phen: IPC", ipc_ratio(1.42, 2.27).value(), 0.626, 0.0005},
      {"Nor: IPC", ipc_ratio(1.72, 2).value(), 0.86, 1e-12},
      {"threads over vectors over baseline", product(exact(5.1), exact(18.5)).value().value(), 94.35, 1e-9},
  });
  EXPECT_FALSE(in_flight(145, 4, 3).value().fractional);
}

TEST(RooflineMansard, ABufferBelowOneBlockIsNotRounded) {
  const InFlight part = in_flight(12, 4, 3).value();
  EXPECT_TRUE(part.fractional);
  EXPECT_DOUBLE_EQ(part.instructions, 2.4);
  EXPECT_DOUBLE_EQ(in_flight(145, 4, 100).value().instructions, 29);  // as without brackets
  EXPECT_DOUBLE_EQ(memory_rate(part, 24).value(), 0.1);
}

class RandomHills : public testing::Test {
 protected:
  HillFigures next() {
    const double most = figure_(random_);
    return {most, most * part_(random_), figure_(random_)};
  }

 private:
  std::mt19937 random_{3};
  std::uniform_real_distribution<double> figure_{0.05, 4}, part_{0.05, 1};
};

TEST_F(RandomHills, EquationsAgree) {
  for (int i = 0; i < 500; ++i) {
    const HillFigures figures = next();
    const double ridge = figures.ridge(), at = cycles(figures, ridge).value();
    EXPECT_NEAR(cycles_left(figures, ridge).value() / at, 1, 1e-12);
    EXPECT_NEAR(cycles_right(figures, ridge).value() / at, 1, 1e-12);
    EXPECT_NEAR(cycles(figures, ridge / 3).value() / cycles_left(figures, ridge / 3).value(), 1, 1e-12);
    EXPECT_NEAR(cycles(figures, ridge * 3).value() / cycles_right(figures, ridge * 3).value(), 1, 1e-12);
  }
}

TEST_F(RandomHills, Identities) {
  constexpr double infinite = 1e6;  // instructions a cycle: no clipping
  for (int i = 0; i < 500; ++i) {
    const HillFigures figures = next();
    const double ridge = figures.ridge();
    EXPECT_NEAR(ipc_at(figures, 0, infinite), figures.memory_most, 1e-12);
    EXPECT_NEAR(ipc_at(figures, ridge, infinite), ridge_ipc(figures).value(), 1e-9);
    EXPECT_NEAR(ipc_at(figures, 1e12, infinite), figures.other, 1e-6);
    const HillFigures classic = hill(figures.memory_most, figures.memory_most, figures.other);
    for (const double at : {ridge / 2, ridge, ridge * 2}) {
      const double expected = (1 + at) * std::min(classic.memory_most, classic.other / at);
      EXPECT_NEAR(ipc_at(classic, at, infinite), expected, 1e-9 * expected);
    }
    const bool rises = ipc_at(figures, ridge * 1.001, infinite) > ipc_at(figures, ridge, infinite);
    EXPECT_EQ(rises, rises_past_ridge(figures).value());
  }
}

Hill level_hill(Level level, double most, double at_ridge) { return {level, exact(most), exact(at_ridge)}; }

TEST_F(RandomHills, NoLevelExceedsANearerOne) {
  for (int i = 0; i < 200; ++i) {
    const HillFigures a = next(), b = next(), c = next();
    const Mansard model = Mansard::of({level_hill(Level::l1d, a.memory_most, a.memory_at_ridge),
                                       level_hill(Level::l3, b.memory_most, b.memory_at_ridge),
                                       level_hill(Level::memory, c.memory_most, c.memory_at_ridge)},
                                      exact(a.other), wide)
                              .value();
    for (const double at : {0.0, 0.1, 1.0, 3.0, 10.0, 100.0}) {
      const double l1d = model.ipc(Level::l1d, exact(at)).value().value();
      const double l3 = model.ipc(Level::l3, exact(at)).value().value();
      EXPECT_GE(l1d, l3);
      EXPECT_GE(l3, model.ipc(Level::memory, exact(at)).value().value());
    }
  }
}

TEST_F(RandomHills, IntervalsHoldEveryHillWithinThem) {
  std::mt19937 random{4};
  std::uniform_real_distribution<double> part{0, 1};
  const auto between = [&](const Estimate& e) { return e.low() + (e.high() - e.low()) * part(random); };
  const Hill measured{Level::memory, within(0.4, 0.5, 0.6), within(0.2, 0.3, 0.38)};
  const Estimate other = within(1.8, 2, 2.1);
  const Mansard model = Mansard::of({measured}, other, wide).value();
  for (const Estimate& intensity : {within(0, 0, 0), within(1, 2, 3), within(2, 4, 9), within(10, 20, 40)}) {
    const Estimate range = model.ipc(Level::memory, intensity).value();
    for (int i = 0; i < 500; ++i) {
      const double most = between(measured.memory_most);
      const double ipc =
          ipc_at(hill(most, std::min(most, between(measured.memory_at_ridge)), between(other)), between(intensity));
      EXPECT_GE(ipc, range.low() - 1e-12);
      EXPECT_LE(ipc, range.high() + 1e-12);
    }
  }
}

// ---- verdicts -----------------------------------------------------------------------------------------------

Mansard machine() {
  return Mansard::of(
             {level_hill(Level::memory, 0.3, 0.1), level_hill(Level::l1d, 2, 2), level_hill(Level::l3, 0.6, 0.4)},
             exact(2), wide)
      .value();
}
Verdict judged(double intensity, double ipc, bool scalar = false) {
  return machine().judge({exact(intensity), exact(ipc), scalar}).value();
}

TEST(RooflineMansard, RegionsAndNeighbours) {
  EXPECT_EQ(machine().near_ridge().value(), 1);
  const Verdict left = judged(0.5, 0.9);
  EXPECT_EQ(left.region, Region::memory);
  EXPECT_EQ(left.below->name, "L3");
  EXPECT_EQ(left.above->name, "1RS");  // bundle1 and garon2 of fig. 27: near one retired instruction a cycle
  EXPECT_EQ(left.advice, (std::vector{Advice::access_pattern, Advice::locality}));
  const Verdict mixed = judged(3, 0.9);
  EXPECT_EQ(mixed.region, Region::mixed);
  EXPECT_EQ(mixed.advice,
            (std::vector{Advice::access_pattern, Advice::locality, Advice::hide_latency, Advice::vectorise}));
  EXPECT_EQ(judged(100, 1.5).region, Region::compute);
  EXPECT_EQ(judged(100, 1.5).advice, std::vector{Advice::vectorise});
}

TEST(RooflineMansard, AScalarLoopAtItsHorizontalShouldBeVectorised) {
  const Verdict verdict = judged(0.5, 1, true);
  EXPECT_EQ(verdict.reached.front().name, "1RS");
  EXPECT_EQ(verdict.advice.front(), Advice::vectorise);
  EXPECT_NE(judged(0.5, 1, false).advice.front(), Advice::vectorise);
}

TEST(RooflineMansard, HorizontalsEndAtTheRetirementWidth) {
  const auto roofs = machine().retirement_roofs();
  ASSERT_EQ(roofs.size(), 4U);
  EXPECT_EQ(roofs.back().name, "4RS");
  EXPECT_EQ(roofs.back().height.value(), 4);
}

TEST(RooflineMansard, HillsThatAddNoBoundAreLeftOut) {
  const Mansard fast =
      Mansard::of({level_hill(Level::l1d, 2, 2), level_hill(Level::l2, 1, 1)}, exact(3.5), 3.5).value();
  const auto names = [&fast](double intensity) {
    std::string all;
    const auto found = fast.intersections(exact(intensity));
    for (const Intersection& roof : found.value()) {
      all += roof.name + " ";
    }
    return all;
  };
  EXPECT_EQ(names(0.1), "L1D L2 1RS 2RS ");
  EXPECT_EQ(names(2), "L2 1RS 2RS 3RS 3.5RS ");  // L1D's hill is clipped
  EXPECT_EQ(names(10), "1RS 2RS 3RS 3.5RS ");    // both are
  const Mansard slow =
      Mansard::of({level_hill(Level::l1d, 2, 2), level_hill(Level::l2, 1, 1)}, exact(1.5), 3.5).value();
  EXPECT_EQ(slow.intersections(exact(10)).value().size(), 2U);  // L1D's hill is L2's, too; 1RS
  EXPECT_EQ(slow.judge({exact(10), exact(1.65), false}).value().undecided, "");
}

TEST(RooflineMansard, VectorisationByTheRatioOfIpc) {
  const auto outcome = [](const Estimate& before, const Estimate& after) {
    return vectorisation(before, after, 8).value().outcome;
  };
  EXPECT_EQ(outcome(exact(2), exact(2)), Vectorisation::full);
  EXPECT_EQ(outcome(exact(2), exact(1)), Vectorisation::partial);
  EXPECT_EQ(outcome(exact(2), exact(0.25)), Vectorisation::nothing);
  EXPECT_EQ(outcome(exact(2), within(1.8, 1.9, 2.1)), Vectorisation::full);
  EXPECT_EQ(outcome(exact(2), within(0.1, 1, 3)), Vectorisation::undecided);
  EXPECT_EQ(vectorisation(exact(2), exact(1), 8).value().efficiency.value(), 0.5);
  EXPECT_FALSE(vectorisation(exact(0), exact(1), 8));
  EXPECT_FALSE(vectorisation(exact(1), exact(1), 1));
}

TEST(RooflineMansard, ImpossibleMachinesAreRefused) {
  EXPECT_FALSE(Mansard::of({}, exact(1), wide));
  EXPECT_FALSE(Mansard::of({level_hill(Level::l1d, 1, 2)}, exact(1), wide));
  EXPECT_FALSE(Mansard::of({level_hill(Level::l1d, 1, 1), level_hill(Level::l1d, 1, 1)}, exact(1), wide));
  EXPECT_FALSE(Mansard::of({level_hill(Level::l1d, 1, 1)}, exact(0), wide));
  EXPECT_FALSE(Mansard::of({level_hill(Level::l1d, 1, 0)}, exact(1), wide));
  EXPECT_FALSE(machine().ipc(Level::l2, exact(1)));
  EXPECT_FALSE(hill_ipc(hill(1, 2, 1), 1, wide));
}

TEST(RooflineMansard, HostileNumbersStayFiniteOrAreRefused) {
  with_hostile_numbers(4, [](const std::vector<double>& x) {
    const HillFigures figures{x[0], x[1], x[2]};
    expect_sane(cycles(figures, x[3]));
    expect_sane(cycles_left(figures, x[3]));
    expect_sane(cycles_right(figures, x[3]));
    expect_sane(hill_ipc(figures, x[3], wide));
    expect_sane(hill_ipc({2, 1, 3}, x[0], x[1]));
    expect_sane(ridge_ipc(figures));
    const auto flight = in_flight(x[0], x[1], x[2]);
    expect_sane(flight ? memory_rate(*flight, x[3]) : tl::unexpected<Error>(flight.error()));
    expect_sane(ipc_ratio(x[0], x[1]));
    const auto model = Mansard::of({level_hill(Level::l1d, 1, 1)}, exact(1), x[0]);
    expect_sane(model ? model->ipc(Level::l1d, exact(1)) : tl::unexpected<Error>(model.error()));
  });
  with_extreme_estimates(4, [](const std::vector<Estimate>& x) {
    const auto model = Mansard::of({{Level::memory, x[0], x[1]}}, x[2], wide);
    if (!model) {
      expect_reason(model.error());
      return;
    }
    expect_sane(model->ipc(Level::memory, x[3]));
    expect_sane(model->judge({x[3], x[0]}));
  });
  with_extreme_estimates(2, [](const std::vector<Estimate>& x) {
    const auto result = vectorisation(x[0], x[1], 4);
    expect_sane(result ? Result<Estimate>(result->efficiency) : tl::unexpected<Error>(result.error()));
  });
}

}  // namespace
}  // namespace crosstalk::models::roofline::mansard_test
