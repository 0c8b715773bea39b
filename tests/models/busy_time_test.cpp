// SPDX-License-Identifier: Apache-2.0
// The source's worked programs (its sections 3.1 to 3.3), with the source's figures of the machine: busy times to the
// digits that it prints, and the classes that it gives.
#include "models/busy_time.h"

#include <gtest/gtest.h>

#include <cmath>

namespace crosstalk::models::busy_time_test {
namespace {

constexpr double giga = 1e9;
constexpr double word = 8;  // bytes of a double

/// A64FX as sections 3.1 to 3.3 have it: no L3.
Peaks source_machine() {
  Peaks peaks;
  peaks[Unit::memory] = {205 * giga, 256 * giga};
  peaks[Unit::l2] = {671 * giga, 671 * giga / 0.672};
  peaks[Unit::fpu] = {768 * giga * 0.68, 768 * giga};
  peaks[Unit::l3].exists = false;
  return peaks;
}

/// Section 3.2: values of 8 bytes that an iteration takes from memory and from L2, and its operations.
LoopWork worked_program(double memory, double l2, double flops, double elapsed_s) {
  const double iterations = 2.18e9;  // 3610 x 60 x 168 x 60
  LoopWork work{elapsed_s, {}};
  work.amount[Unit::memory] = iterations * memory * word;
  work.amount[Unit::l2] = iterations * (l2 + memory) * word;
  work.amount[Unit::fpu] = iterations * flops;
  work.amount[Unit::l1d] = 0;
  return work;
}

/// As printed with so many decimals.
void expect_printed(double value, double printed, int decimals) {
  EXPECT_NEAR(value, printed, 0.5000001 * std::pow(10, -decimals));
}

TEST(BusyTime, SourceInMemoryProgram) {
  LoopWork work{0.15, {}};
  const double iterations = 8000000.0 * 24 * 10;
  work.amount[Unit::memory] = iterations * 2 * word;
  EXPECT_DOUBLE_EQ(*work.amount[Unit::memory], 30.72 * giga);
  work.amount[Unit::l2] = iterations * 2 * word;
  work.amount[Unit::l1d] = 0;
  work.amount[Unit::fpu] = iterations * 4;
  const BusyTimes times = busy_times(work, source_machine());
  expect_printed(*times[Unit::memory].seconds, 0.15, 2);
  const Classified found = classify(times);
  EXPECT_EQ(found.which, BusyClass::in_memory);
  EXPECT_NE(found.evidence.find("Memory was busy for 100 %"), std::string::npos) << found.evidence;
  EXPECT_FALSE(times[Unit::l3].exists);
}

TEST(BusyTime, Source3M2L22F) {
  const BusyTimes times = busy_times(worked_program(3, 2, 2, 0.255), source_machine());
  expect_printed(*times[Unit::memory].seconds, 0.255, 3);
  expect_printed(*times[Unit::l2].seconds, 0.13, 2);
  EXPECT_EQ(bound_of(times)->unit, Unit::memory);
  EXPECT_EQ(classify(times).which, BusyClass::in_memory);
}

TEST(BusyTime, Source3M12L212F) {
  const BusyTimes times = busy_times(worked_program(3, 12, 12, 0.384), source_machine());
  expect_printed(*times[Unit::memory].seconds, 0.255, 3);
  expect_printed(*times[Unit::l2].seconds, 0.39, 2);
  EXPECT_EQ(bound_of(times)->unit, Unit::l2);
  EXPECT_EQ(classify(times).which, BusyClass::in_l2);
}

TEST(BusyTime, Source3M6L280F) {
  const BusyTimes times = busy_times(worked_program(3, 6, 80, 0.331), source_machine());
  expect_printed(*times[Unit::memory].seconds, 0.255, 3);
  expect_printed(*times[Unit::l2].seconds, 0.234, 3);
  expect_printed(*times[Unit::fpu].seconds, 0.334, 3);
  EXPECT_EQ(bound_of(times)->unit, Unit::fpu);
  EXPECT_EQ(classify(times).which, BusyClass::in_l2_fpu);
  EXPECT_NEAR(*peak_ratio(times), 1, 1e-12);  // equation 1.5, of the effective peak
}

TEST(BusyTime, TheTheoreticalPeakGivesTheSourcesBusyRatio) {
  // Figure 5.7, "asis": 62.03 GB/s in 64 ms is a memory busy ratio of 24.23 %.
  LoopWork work{0.064, {}};
  work.amount[Unit::memory] = 62.03 * giga * 0.064;
  expect_printed(100 * *busy_times(work, source_machine())[Unit::memory].of_theoretical, 24.23, 2);
}

TEST(BusyTime, SourceRooflineOfTheSparseMatrix) {
  // Section 5.3.1: 46 GB/s and 128 GFLOPS are 0.36 bytes an operation; a loop with 4 reaches 9 % of the peak.
  Peaks peaks;
  peaks[Unit::memory] = {46 * giga, 64 * giga};
  peaks[Unit::fpu] = {128 * giga, 128 * giga};
  expect_printed(*machine_balance(peaks), 0.36, 2);
  LoopWork work{1, {}};
  work.amount[Unit::memory] = 8e9;
  work.amount[Unit::fpu] = 2e9;
  EXPECT_DOUBLE_EQ(*bytes_to_flops(work), 4);
  expect_printed(*peak_ratio(busy_times(work, peaks)), 0.09, 2);
}

TEST(BusyTime, WhatIsNotKnownIsAbsent) {
  LoopWork work{2, {}};
  work.amount[Unit::memory] = 100 * giga;
  const BusyTimes times = busy_times(work, source_machine());
  EXPECT_TRUE(times[Unit::memory].seconds);
  EXPECT_FALSE(times[Unit::l2].seconds);
  EXPECT_FALSE(times[Unit::l1d].of_effective);
  EXPECT_FALSE(peak_ratio(times));
  EXPECT_FALSE(bytes_to_flops(work));
  EXPECT_FALSE(bound_of(BusyTimes{}));
}

TEST(BusyTime, APeakThatVariesGivesBothEnds) {
  LoopWork work{1, {}};
  work.amount[Unit::memory] = 30 * giga;
  Peaks peaks = source_machine();
  for (const Unit unit : all_units) {
    peaks[unit] = {40 * giga, std::nullopt, unit != Unit::l3, 0.2};
    work.amount[unit] = unit == Unit::memory ? 30 * giga : giga;
  }
  const BusyTimes times = busy_times(work, peaks);
  EXPECT_DOUBLE_EQ(*times[Unit::memory].of_effective, 0.75);
  EXPECT_DOUBLE_EQ(*times[Unit::memory].of_effective_most, 0.9375);
  const Classified classified = classify(times);
  EXPECT_EQ(classified.which, BusyClass::in_memory);
  EXPECT_NE(classified.evidence.find("75 %"), std::string::npos) << classified.evidence;
  EXPECT_NE(classified.evidence.find("(for 94 % against the lower rate"), std::string::npos) << classified.evidence;

  for (const Unit unit : all_units) {
    peaks[unit].spread = 0.05;
  }
  EXPECT_EQ(classify(busy_times(work, peaks)).which, BusyClass::under_tuned);
  peaks[Unit::memory].spread = 1;  // nonsense is no end
  EXPECT_FALSE(busy_times(work, peaks)[Unit::memory].of_effective_most);
}

TEST(BusyTime, NoWorkTakesNoTimeWhateverThePeak) {
  LoopWork work{2, {}};
  work.amount[Unit::fpu] = 0;
  const BusyTimes times = busy_times(work, Peaks{});
  EXPECT_EQ(times[Unit::fpu].seconds, 0);
  EXPECT_EQ(times[Unit::fpu].of_effective, 0);
}

TEST(BusyTime, WithoutOperationsTheRatioIsInfinite) {
  LoopWork work{1, {}};
  work.amount[Unit::memory] = 5;
  work.amount[Unit::fpu] = 0;
  EXPECT_TRUE(std::isinf(*bytes_to_flops(work)));
  work.amount[Unit::memory] = 0;
  EXPECT_FALSE(bytes_to_flops(work));
}

/// All units known, with these parts of the time.
BusyTimes parts(double memory, double l3, double l2, double l1d, double fpu) {
  BusyTimes times;
  const double all[] = {memory, l3, l2, l1d, fpu};
  for (const Unit unit : all_units) {
    const double part = all[static_cast<std::size_t>(unit)];
    times[unit] = {part, part, part};
  }
  return times;
}

TEST(Classify, EachClassHasItsUnit) {
  EXPECT_EQ(classify(parts(0.9, 0.3, 0.2, 0.1, 0)).which, BusyClass::in_memory);
  EXPECT_EQ(classify(parts(0.2, 0.9, 0.2, 0.1, 0)).which, BusyClass::in_l3);
  EXPECT_EQ(classify(parts(0.2, 0.3, 0.9, 0.1, 0)).which, BusyClass::in_l2);
  EXPECT_EQ(classify(parts(0, 0, 0, 0.9, 0.5)).which, BusyClass::in_l1d);
  EXPECT_EQ(classify(parts(0, 0, 0, 0.3, 0.95)).which, BusyClass::in_l2_fpu);
  EXPECT_EQ(classify(parts(0.5, 0.5, 0.5, 0.5, 0.79)).which, BusyClass::under_tuned);
  EXPECT_EQ(classify(parts(0.5, 0.5, 0.5, 0.5, 0.8)).which, BusyClass::in_l2_fpu);
}

TEST(Classify, AnUnknownUnitLeavesOpenWhetherALoopIsTuned) {
  BusyTimes times = parts(0, 0.1, 0.1, 0.2, 0.3);
  times[Unit::memory] = {};
  const Classified open = classify(times);
  EXPECT_FALSE(open.which);
  EXPECT_NE(open.evidence.find("memory"), std::string::npos);
  times[Unit::fpu] = {0.9, 0.9, 0.5};
  EXPECT_EQ(classify(times).which, BusyClass::in_l2_fpu);  // no other can be much busier
  times[Unit::memory].exists = false;
  times[Unit::fpu] = {0.3, 0.3, 0.2};
  EXPECT_EQ(classify(times).which, BusyClass::under_tuned);
}

TEST(Classify, MoreThanAllOfTheTimeIsSaidToBeImpossible) {
  for (const double share : {1.05, 1.3}) {
    const std::string evidence = classify(parts(share, 0, 0, 0, 0)).evidence;
    EXPECT_NE(evidence.find("against its calibrated peak; it is at its peak;"), std::string::npos) << evidence;
    EXPECT_NE(evidence.find(". More than 100 % is impossible"), std::string::npos) << evidence;
  }
  EXPECT_EQ(classify(parts(1.01, 0, 0, 0, 0)).evidence.find("impossible"), std::string::npos);
}

}  // namespace
}  // namespace crosstalk::models::busy_time_test
