// SPDX-License-Identifier: Apache-2.0
// The original roofline's ceilings, with the figures of its appendix, and the verdict among them.
#include <gtest/gtest.h>

#include <random>

#include "models/roofline/ceilings.h"
#include "models/roofline/orm.h"
#include "tests/models/roofline_example.h"

namespace crosstalk::models::roofline::ceilings_test {
namespace {

using namespace example;

CoreFigures core_of(std::uint32_t cores, std::uint32_t threads, double latency, double lanes, double cycles) {
  return {cores, threads, latency, lanes, cycles, exact(giga)};
}
double rate(const Result<Roof>& roof) { return roof.value().height.value() / giga; }
std::vector<double> rates(const Result<std::vector<Roof>>& roofs) {
  std::vector<double> heights;
  for (const Roof& roof : roofs.value()) {
    heights.push_back(roof.height.value() / giga);
  }
  return heights;
}

/// SPARCITY D1.2, 2.1.2: two Xeon 8168 of 24 cores, 20 bytes in 1.5 cycles of each.
Roof source_l1() { return bandwidth(Level::l1d, 48 * 2.5 * giga * 20 / 1.5); }
Roof source_memory(double part = 1) { return bandwidth(Level::memory, 256 * giga * part); }
double bound(double intensity, const Roof& roof) {
  return orm_bound(exact(intensity), roof, compute(1e15)).value().value() / giga;
}

TEST(RooflineCeilings, SourceBoundsOfSparseProducts) {
  expect_vectors({
      {"warm, intensity 1/10", bound(0.1, source_l1()), 160, 1e-6},
      {"cold, intensity 1/6", bound(1.0 / 6, source_memory()), 42.7, 0.05},
      {"cold, 70 % of the bandwidth", bound(1.0 / 6, source_memory(0.7)), 29.9, 0.05},
      {"cold, 80 % of the bandwidth", bound(1.0 / 6, source_memory(0.8)), 34.1, 0.05},
      {"worst, intensity 1/38", bound(1.0 / 38, source_memory()), 6.74, 0.005},
  });
}

TEST(RooflineCeilings, InCoreFormulas) {
  const CoreFigures santa_rosa = core_of(2, 1, 4, 2, 2);  // two lanes, one vector in two cycles
  EXPECT_EQ(rate(dlp_ceiling(santa_rosa)), rate(ilp_ceiling(santa_rosa)));
  EXPECT_EQ(rates(in_core_ceilings(santa_rosa)), (std::vector<double>{0.5, 2, 2, 4}));
  const CoreFigures niagara = core_of(8, 8, 6, 1, 1);  // enough threads to hide the latency
  EXPECT_EQ(rate(tlp_ceiling(niagara)), 8);
  EXPECT_EQ(rate(single_issue_peak(niagara)), 8);
  EXPECT_EQ(single_issue_peak(niagara).value().threads, 64U);
}

TEST(RooflineCeilings, TlpIsTheLeastOfInCoreCeilings) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> figure(1, 16);
  for (int i = 0; i < 500; ++i) {
    const double lanes = figure(random);
    const double cycles = std::min(lanes, figure(random));
    const auto threads = static_cast<std::uint32_t>(figure(random));
    const auto ceilings = rates(in_core_ceilings(core_of(3, threads, figure(random), lanes, cycles)));
    EXPECT_TRUE(std::is_sorted(ceilings.begin(), ceilings.end()));
  }
}

TEST(RooflineCeilings, CellStallsBySixCycles) {
  const CoreFigures cell = core_of(1, 1, 1, 1, 1);
  const IssueFigures issue{1, 4, 6};
  const auto mixes = rates(mix_ceilings(cell, issue, 3, compute(100 * giga)));
  expect_vectors({{"all floating point", mixes[0], 4.0 / 7, 1e-6},
                  {"half", mixes[1], 4.0 / 8, 1e-6},
                  {"a quarter", mixes[2], 4.0 / 10, 1e-6}});
  EXPECT_EQ(rate(mix_ceiling(cell, {4, 8, 0}, 0.5, compute(2 * giga))), 2);  // capped at the peak
  EXPECT_EQ(mix_ceiling(cell, issue, 0.25, compute(giga)).value().name, "25 % FP");
}

TEST(RooflineCeilings, ImbalanceHalvesDownToOneThread) {
  const Roof tlp = compute(8 * giga, 8), peak = compute(64 * giga, 8);
  EXPECT_EQ(rates(imbalance_ceilings(ImbalanceOrder::last, tlp, peak)), (std::vector<double>{32, 16, 8}));
  EXPECT_EQ(rates(imbalance_ceilings(ImbalanceOrder::first, tlp, peak)), (std::vector<double>{4, 2, 1}));
  const Roof six = compute(6 * giga, 6);
  EXPECT_EQ(rates(imbalance_ceilings(ImbalanceOrder::last, six, six)), (std::vector<double>{3, 1.5, 1}));
  EXPECT_TRUE(rates(imbalance_ceilings(ImbalanceOrder::last, compute(1), compute(1))).empty());
}

TEST(RooflineCeilings, MeasuredBalance) {
  const std::vector<double> weights = {4, 1, 1, 1};
  EXPECT_DOUBLE_EQ(utilisation(weights).value(), 1.75);
  EXPECT_DOUBLE_EQ(rate(measured_balance_ceiling(compute(16 * giga, 4), weights)), 7);
  EXPECT_FALSE(measured_balance_ceiling(compute(16 * giga, 8), weights));
  EXPECT_FALSE(utilisation({}));
  EXPECT_FALSE(utilisation(std::vector<double>{0, 0}));
}

TEST(RooflineCeilings, BandwidthsAscendByOptimisation) {
  const auto ceilings = bandwidth_ceilings({{Ceiling::snoop_filter, exact(20 * giga)},
                                            {Ceiling::one_socket, exact(9 * giga)},
                                            {Ceiling::software_prefetch, exact(11 * giga)},
                                            {Ceiling::affinity, exact(12 * giga)}},
                                           8);
  EXPECT_EQ(rates(ceilings), (std::vector<double>{9, 12, 20}));  // prefetching won nothing
  EXPECT_FALSE(bandwidth_ceilings({}, 8));
  EXPECT_FALSE(bandwidth_ceilings({{Ceiling::ilp, exact(1)}}, 8));
}

TEST(RooflineCeilings, BandwidthsByPartOfTheCores) {
  const auto ceilings = active_core_ceilings({{8, exact(40 * giga)}, {2, exact(18 * giga)}, {4, exact(36 * giga)}}, 8);
  EXPECT_EQ(rates(ceilings), (std::vector<double>{18, 36, 40}));
  EXPECT_EQ(ceilings.value().front().name, "1/4 of the cores");
  EXPECT_FALSE(active_core_ceilings({{9, exact(1)}}, 8));
  EXPECT_FALSE(active_core_ceilings({}, 8));
}

TEST(RooflineCeilings, LittlesLaw) {
  EXPECT_EQ(bytes_in_flight(exact(100e-9), exact(64 * giga)).value().value(), 6400);
  EXPECT_EQ(bandwidth_of(exact(3200), exact(100e-9), exact(64 * giga)).value().value(), 32 * giga);
  EXPECT_EQ(bandwidth_of(exact(12800), exact(100e-9), exact(64 * giga)).value().value(), 64 * giga);
}

Verdict judged(double intensity, double performance) {
  std::vector<Roof> in_core = in_core_ceilings(core_of(8, 1, 4, 4, 1)).value();  // 2, 8, 32, 64 Gflop/s
  const auto bandwidths =
      bandwidth_ceilings({{Ceiling::one_socket, exact(10 * giga)}, {Ceiling::affinity, exact(20 * giga)}}, 8);
  return orm_verdict(bandwidths.value(), in_core, exact(intensity), exact(performance * giga)).value();
}

TEST(RooflineOrm, AdviceReachesTheNextCeiling) {
  const Verdict right = judged(10, 5);
  EXPECT_EQ(right.region, Region::compute);
  EXPECT_EQ(right.below->name, "TLP");
  EXPECT_EQ(right.above->name, "ILP");
  EXPECT_DOUBLE_EQ(right.gain_bound.value().value(), 1.6);
  EXPECT_EQ(right.advice, std::vector{Advice::independent_operations});
  const Verdict left = judged(0.25, 2.4);  // the roofline is at 5, its first bandwidth ceiling at 2.5
  EXPECT_EQ(left.region, Region::memory);
  EXPECT_EQ(left.below->name, "TLP");
  EXPECT_EQ(left.above->name, "one socket");
  EXPECT_EQ(left.advice, (std::vector{Advice::unroll_and_pad, Advice::raise_intensity}));
  EXPECT_EQ(judged(0.25, 3).advice.front(), Advice::affinity);
}

TEST(RooflineOrm, CeilingsAboveTheRooflineBoundNothing) {
  const Verdict verdict = judged(0.05, 0.9);  // the roofline is at 1, all in-core ceilings above
  EXPECT_EQ(verdict.below->name, "one socket");
  EXPECT_EQ(verdict.above->name, "memory affinity");
  EXPECT_EQ(judged(100, 64).reached.front().name, "peak");
  EXPECT_DOUBLE_EQ(judged(100, 64).gain_bound.value().value(), 1);
}

TEST(RooflineOrm, MissingRoofsAreNamed) {
  const std::vector<Roof> memory = {bandwidth(Level::memory, 1)}, peak = {compute(1)};
  EXPECT_NE(orm_verdict({}, peak, exact(1), exact(1)).error().message.find("no bandwidth roof"), std::string::npos);
  EXPECT_NE(orm_verdict(memory, {}, exact(1), exact(1)).error().message.find("no compute roof"), std::string::npos);
  EXPECT_FALSE(orm_verdict(memory, peak, exact(0), exact(1)));
  EXPECT_EQ(orm_bound(exact(1), memory.front(), peak.front(), compute(0.5)).value().value(), 0.5);
}

TEST(RooflineCeilings, HostileNumbersStayFiniteOrAreRefused) {
  with_hostile_numbers(3, [](const std::vector<double>& x) {
    const CoreFigures core{2, 2, x[0], x[1], x[2], exact(giga)};
    expect_sane(in_core_ceilings(core));
    expect_sane(mix_ceiling(core_of(1, 1, 1, 1, 1), {x[0], x[1], x[2]}, 0.5, compute(1)));
    expect_sane(mix_ceiling(core_of(1, 1, 1, 1, 1), {x[0], 1, x[1]}, x[2], compute(1)));
    expect_sane(utilisation(x));
    expect_sane(measured_balance_ceiling(compute(1, 3), x));
  });
  expect_sane(tlp_ceiling(core_of(0, 1, 1, 1, 1)));
  expect_sane(tlp_ceiling(core_of(~0U, ~0U, 1, 1, 1)));
  expect_sane(mix_ceilings(core_of(1, 1, 1, 1, 1), {}, 65, compute(1)));
  EXPECT_FALSE(imbalance_ceilings(ImbalanceOrder::last, compute(1, 0), compute(1, 0)));
  EXPECT_EQ(imbalance_ceilings(ImbalanceOrder::last, compute(1, ~0U), compute(1, ~0U)).value().size(), 32U);
  with_extreme_estimates(3, [](const std::vector<Estimate>& x) {
    expect_sane(bandwidth_of(x[0], x[1], x[2]));
    expect_sane(bandwidth_ceilings({{Ceiling::one_socket, x[0]}}, 1));
    Roof memory = bandwidth(Level::memory, 1);
    memory.height = x[0];
    expect_sane(orm_verdict(std::vector{memory}, std::vector{compute(1)}, x[1], x[2]));
    CoreFigures core = core_of(2, 1, 1, 8, 1);
    core.hz = x[0];
    expect_sane(in_core_ceilings(core));
  });
}

}  // namespace
}  // namespace crosstalk::models::roofline::ceilings_test
