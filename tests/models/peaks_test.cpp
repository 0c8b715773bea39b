// SPDX-License-Identifier: Apache-2.0
#include "models/peaks.h"

#include <gtest/gtest.h>

namespace crosstalk::models::peaks_test {
namespace {

Figure measured(double value, std::optional<double> theoretical = std::nullopt) {
  Figure figure;
  figure.value = value;
  figure.tries = 5;
  figure.theoretical = theoretical;
  return figure;
}

constexpr auto wide = Width::avx2;
constexpr auto real8 = Precision::double_precision;

/// Four cores of one thread; memory gives one core 20 GB/s and all of them 50.
Machine machine() {
  Machine m;
  for (std::uint32_t cpu = 0; cpu < 4; ++cpu) {
    m.processors.push_back({cpu, cpu, 0, 0});
    m.caches.push_back({1, 32768, 64, 8, {cpu}});
    m.caches.push_back({2, 1 << 20, 64, 8, {cpu}});
  }
  m.bandwidths = {{Level::memory, Traffic::load, Scope::one_core, measured(20e9, 25e9)},
                  {Level::memory, Traffic::load, Scope::all_cores, measured(50e9, 100e9)},
                  {Level::memory, Traffic::triad, Scope::one_core, measured(16e9)},
                  {Level::memory, Traffic::triad, Scope::all_cores, measured(40e9)},
                  {Level::memory, Traffic::triad_streaming, Scope::one_core, measured(18e9)},
                  {Level::l1d, Traffic::load, Scope::one_core, measured(200e9)},
                  {Level::l1d, Traffic::load, Scope::all_cores, measured(720e9)}};
  m.flops = {{wide, real8, Operation::fma, Scope::one_core, measured(48e9, 50e9)},
             {wide, real8, Operation::fma, Scope::all_cores, measured(176e9)},
             {wide, real8, Operation::add, Scope::one_core, measured(24e9, 25e9)},
             {Width::scalar, real8, Operation::mul, Scope::one_core, measured(6e9)}};
  return m;
}

TEST(Peaks, WhatIsSharedIsDividedAndNoMoreThanOneCoreTakes) {
  const Machine m = machine();
  const auto memory = [&](double threads) { return *peaks_of(m, {.threads = threads})[Unit::memory].effective; };
  EXPECT_DOUBLE_EQ(memory(1), 20e9);
  EXPECT_DOUBLE_EQ(memory(2), 20e9);
  EXPECT_DOUBLE_EQ(memory(4), 12.5e9);
  EXPECT_DOUBLE_EQ(memory(9), 12.5e9);  // no more run at once than there are cores
  EXPECT_DOUBLE_EQ(*peaks_of(m, {.threads = 1})[Unit::memory].theoretical, 25e9);
}

TEST(Peaks, WhatEachCoreHasSlowsDownAsMeasured) {
  const Machine m = machine();
  const auto l1d = [&](double threads) { return *peaks_of(m, {.threads = threads})[Unit::l1d].effective; };
  EXPECT_DOUBLE_EQ(l1d(1), 200e9);
  EXPECT_DOUBLE_EQ(l1d(4), 180e9);
  EXPECT_DOUBLE_EQ(l1d(2.5), 190e9);
}

Figure absent(const char* reason) {
  Figure figure;
  figure.refused = reason;
  return figure;
}

TEST(Peaks, OfWhatIsSharedTheOtherEndSaysNothing) {
  Machine m = machine();
  const auto memory = [&](double threads) { return peaks_of(m, {.threads = threads})[Unit::memory].effective; };
  m.bandwidths = {{Level::memory, Traffic::load, Scope::one_core, measured(20e9)},
                  {Level::memory, Traffic::load, Scope::all_cores, absent("too busy")}};
  EXPECT_EQ(memory(1), 20e9);
  EXPECT_EQ(memory(2), std::nullopt);
  EXPECT_EQ(memory(4), std::nullopt);
  m.bandwidths = {{Level::memory, Traffic::load, Scope::one_core, absent("too busy")},
                  {Level::memory, Traffic::load, Scope::all_cores, measured(50e9)}};
  EXPECT_EQ(memory(1), std::nullopt);
  EXPECT_EQ(memory(4), 12.5e9);
}

TEST(Peaks, WhatEachCoreHasIsMuchTheSameAtBothEnds) {
  Machine m = machine();
  m.bandwidths = {{Level::l1d, Traffic::load, Scope::one_core, absent("too busy")},
                  {Level::l1d, Traffic::load, Scope::all_cores, measured(720e9)}};
  EXPECT_EQ(peaks_of(m, {.threads = 1})[Unit::l1d].effective, 180e9);
}

TEST(Peaks, TheReasonOfAnAbsentOneIsTheFigures) {
  Machine m = machine();
  Demand demand{.threads = 4};
  m.bandwidths[1].bytes_per_s = absent("too busy");
  m.bandwidths[3].bytes_per_s = absent("too busy");
  EXPECT_EQ(why_no_peak(m, Unit::memory, demand), "its peak is not in the calibration: too busy");
  EXPECT_EQ(why_no_peak(m, Unit::l3, demand), "its peak is not in the calibration");
  m.flops[2].flops_per_s = absent("disturbed");
  demand.flops.add(wide, real8, Operation::add, 1e9);
  EXPECT_EQ(why_no_peak(m, Unit::fpu, demand), "its peak is not in the calibration: disturbed");
  demand.flops.other = 1e9;
  EXPECT_NE(why_no_peak(m, Unit::fpu, demand).find("are not calibrated"), std::string::npos);
}

TEST(Peaks, BandwidthIsThatOfTheLikestLoop) {
  const Machine m = machine();
  EXPECT_DOUBLE_EQ(*peaks_of(m, {.store_share = 0.3})[Unit::memory].effective, 16e9);
  EXPECT_DOUBLE_EQ(*peaks_of(m, {.store_share = 0.3, .streaming = true})[Unit::memory].effective, 18e9);
  EXPECT_DOUBLE_EQ(*peaks_of(m, {.store_share = 1})[Unit::memory].effective, 20e9);  // not measured: the best
}

TEST(Peaks, ALevelThatIsNotThereIsNotMissing) {
  const Peaks peaks = peaks_of(machine(), {});
  EXPECT_FALSE(peaks[Unit::l3].exists);
  EXPECT_TRUE(peaks[Unit::l2].exists);
  EXPECT_FALSE(peaks[Unit::l2].effective);  // there, and not measured
}

TEST(Peaks, AMixTakesTheTimeOfItsParts) {
  FlopMix mix;
  mix.add(wide, real8, Operation::fma, 480);
  mix.add(wide, real8, Operation::add, 240);
  const Peak peak = peak_of_mix(machine(), mix, 1);
  EXPECT_DOUBLE_EQ(*peak.effective, 720 / (480 / 48e9 + 240 / 24e9));
  EXPECT_DOUBLE_EQ(*peak.theoretical, 720 / (480 / 50e9 + 240 / 25e9));
}

TEST(Peaks, TheGreatestSpreadOfItsFiguresIsThePeaks) {
  Machine m = machine();
  for (Bandwidth& row : m.bandwidths) {
    row.bytes_per_s.spread = row.scope == Scope::one_core ? 0.1 : 0.2;
  }
  for (FlopPeak& row : m.flops) {
    row.flops_per_s.spread = row.operation == Operation::fma ? 0.03 : 0.01;
  }
  FlopMix mix;
  mix.add(wide, real8, Operation::fma, 480);
  mix.add(wide, real8, Operation::add, 240);
  const Peaks peaks = peaks_of(m, {.flops = mix, .store_share = 0.3});
  EXPECT_DOUBLE_EQ(peaks[Unit::memory].spread, 0.2);
  EXPECT_DOUBLE_EQ(peaks[Unit::fpu].spread, 0.03);
  EXPECT_DOUBLE_EQ(peaks[Unit::l2].spread, 0) << "nothing was measured of it";
}

TEST(Peaks, AMixWithWhatWasNotMeasuredHasNoPeak) {
  FlopMix mix;
  mix.add(wide, real8, Operation::fma, 480);
  mix.other = 40;  // a little: left out of the time
  EXPECT_DOUBLE_EQ(*peak_of_mix(machine(), mix, 1).effective, 48e9);
  mix.other = 400;
  EXPECT_FALSE(peak_of_mix(machine(), mix, 1).effective);
  FlopMix unknown;
  unknown.add(Width::avx512, real8, Operation::fma, 1);
  EXPECT_FALSE(peak_of_mix(machine(), unknown, 1).effective);
  EXPECT_FALSE(peak_of_mix(machine(), {}, 1).effective);
}

TEST(Peaks, CountsOfAMixAreSums) {
  FlopMix mix;
  mix.add(Width::scalar, real8, Operation::mul, 3);
  mix.add(wide, Precision::single_precision, Operation::fma, 8);
  mix.other = 1;
  EXPECT_DOUBLE_EQ(mix.total(), 12);
  EXPECT_DOUBLE_EQ(mix.of_width(wide), 8);
  EXPECT_DOUBLE_EQ(mix.of_operation(Operation::mul), 3);
  EXPECT_DOUBLE_EQ(mix.of_precision(Precision::single_precision), 8);
  FlopMix twice;
  twice.add(mix, 2);
  EXPECT_DOUBLE_EQ(twice.total(), 24);
}

}  // namespace
}  // namespace crosstalk::models::peaks_test
