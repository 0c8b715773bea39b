// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/sample_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace crosstalk::observer::sample_pace_test {
namespace {

constexpr std::uint64_t us = 1000;
constexpr std::uint64_t ms = 1000 * us;
constexpr double second_ns = 1e9;
constexpr double allowed = 0.015;
constexpr double guess_ns = 45'000;

/// A thread that computes all the time, sampled for `seconds` if a sample costs `sample_ns` and the first twentieth of
/// a second costs `start_ns` more. All its samples, and their cost.
struct Outcome {
  double samples = 0, cost_ns = 0;
};
Outcome sampled(std::uint64_t wanted_ns, double sample_ns, double start_ns, int seconds) {
  SamplePace pace(wanted_ns, allowed, guess_ns);
  std::uint64_t period_ns = wanted_ns;
  Outcome run;
  for (double at_ns = 0, spell_ns = 0; at_ns < seconds * second_ns;) {
    spell_ns = at_ns == 0 ? 0.05 * second_ns : std::min(spell_ns * 4, second_ns);
    spell_ns = std::min(spell_ns, seconds * second_ns - at_ns);
    const double ticks = spell_ns / static_cast<double>(period_ns);
    const double cost_ns = ticks * sample_ns + (at_ns == 0 ? start_ns : 0);
    run.samples += ticks;
    run.cost_ns += cost_ns;
    period_ns = pace.review({static_cast<std::uint64_t>(ticks), cost_ns});
    at_ns += spell_ns;
  }
  return run;
}

TEST(SamplePace, takes_what_the_budget_affords_from_the_first_second_on) {
  for (const double sample_ns : {10e3, 45e3, 100e3, 200e3}) {
    for (const int seconds : {1, 3, 10}) {
      const double affordable = std::min(allowed * second_ns / sample_ns, 250.0) * seconds;
      const Outcome seen = sampled(4 * ms, sample_ns, 0, seconds);
      EXPECT_GE(seen.samples, 0.8 * affordable) << sample_ns << " ns, " << seconds << " s";
      EXPECT_LE(seen.samples, 1.5 * affordable) << sample_ns << " ns, " << seconds << " s";
    }
  }
}

TEST(SamplePace, a_dear_beginning_is_soon_forgotten) {
  EXPECT_GE(sampled(4 * ms, 45e3, 5e6, 3).samples, 0.8 * 3 * 250);
}

TEST(SamplePace, is_never_faster_than_was_asked_for_nor_slower_than_the_longest_period) {
  SamplePace pace(4 * ms, allowed, guess_ns);
  EXPECT_EQ(pace.review({1000, 1.0}), 4 * ms);
  for (int spell = 0; spell < 10; ++spell) {
    pace.review({1000, 1e12});
  }
  EXPECT_EQ(pace.review({1000, 1e12}), 64 * ms);
  SamplePace slow(100 * ms, allowed, guess_ns);
  EXPECT_EQ(slow.review({10, 1e12}), 100 * ms);
}

TEST(SamplePace, a_spell_without_samples_says_nothing) {
  SamplePace pace(ms, allowed, guess_ns);
  EXPECT_EQ(pace.review({0, 0}), static_cast<std::uint64_t>(guess_ns / allowed));
}

TEST(SamplePace, without_a_budget_is_as_slow_as_can_be) {
  SamplePace pace(4 * ms, 0, guess_ns);
  EXPECT_EQ(pace.review({}), 64 * ms);
}

ClockCosts switching(double per_s) { return {guess_ns, 4000, per_s / second_ns}; }

TEST(ClockWindows, a_thread_that_switches_seldom_has_its_clock_all_the_time) {
  const ClockWindows windows = clock_windows(switching(100), 4 * ms, 0.024);
  EXPECT_EQ(windows.part, 1);
  EXPECT_EQ(windows.period_ns, 4 * ms);
}

TEST(ClockWindows, clocks_cost_what_they_may_and_tick_as_often_as_that_allows) {
  for (const double switches : {5e3, 20e3, 100e3}) {
    const ClockCosts cost = switching(switches);
    const ClockWindows windows = clock_windows(cost, 4 * ms, 0.024);
    const double samples = windows.part / static_cast<double>(windows.period_ns);
    const double spent = samples * cost.sample_ns +
                         windows.part * cost.switches_per_ns * switch_price(cost.switch_ns, windows.period_ns);
    EXPECT_NEAR(spent, 0.024, 0.0001) << switches;
    EXPECT_GE(samples * second_ns, 100) << switches;
  }
}

TEST(ClockWindows, one_that_does_nothing_but_switch_has_a_clock_now_and_then) {
  EXPECT_EQ(clock_windows(switching(1e7), 4 * ms, 0.024).part, least_part);
}

TEST(ClockWindows, a_period_that_is_short_already_stays) {
  EXPECT_EQ(clock_windows(switching(1e6), 50 * us, 0.024).period_ns, 50 * us);
}

/// Returns the time that samples stand for, as a part of the CPU time of a thread whose windows last `late` times as
/// long as meant.
double represented(double late, int windows, std::uint64_t random) {
  constexpr double cycle_ns = 200e6;
  constexpr double window_ns = 2e6;
  ClockedShare share;
  share.expect_windows(window_ns);
  double ran_ns = 0;
  double stands_for_ns = 0;
  for (int window = 0; window < windows; ++window) {
    share.begin_window(ran_ns);
    const double jitter = 0.5 + uniform(random);
    const double clocked_ns = window_ns * late * jitter;
    for (double at_ns = 0; at_ns < clocked_ns; at_ns += 100e3) {
      stands_for_ns += share.take(100e3);
    }
    share.end_window(clocked_ns);
    ran_ns += clocked_ns + cycle_ns;
  }
  return stands_for_ns / ran_ns;
}

TEST(ClockedShare, samples_of_windows_stand_for_all_that_the_thread_ran_however_late_they_end) {
  for (const double late : {0.3, 1.0, 4.0, 20.0}) {
    EXPECT_NEAR(represented(late, 50, 3), 1, 0.06) << late;
  }
}

TEST(ClockedShare, a_clock_that_is_always_there_counts_as_it_is) {
  ClockedShare share;
  EXPECT_DOUBLE_EQ(share.take(4e6), 4e6);
  share.expect_windows(2e6);
  share.begin_window(104e6);  // 100 ms since then
  EXPECT_DOUBLE_EQ(share.scale(), 50);
  share.keep_clock();
  EXPECT_DOUBLE_EQ(share.take(4e6), 4e6);
}

TEST(ClockedShare, a_window_that_does_not_end_stands_for_itself_once_the_rest_is_made_up_for) {
  ClockedShare share;
  share.expect_windows(1e6);
  share.begin_window(100e6);
  double stands_for_ns = 0;
  for (int sample = 0; sample < 1000; ++sample) {
    stands_for_ns += share.take(1e6);
  }
  EXPECT_NEAR(stands_for_ns, 1100e6, 101e6);
}

TEST(ClockedShare, a_sample_that_comes_late_stands_for_no_more_than_the_thread_ran) {
  ClockedShare share;
  share.expect_windows(1e6);
  share.begin_window(50e6);
  EXPECT_DOUBLE_EQ(share.take(0.5e6), 25e6);
  EXPECT_NEAR(share.take(200e6), 225e6, 1e6) << "the rest of the 50 ms, and 200 ms under the clock";
  EXPECT_DOUBLE_EQ(share.take(1e6), 1e6);
}

TEST(ShareForSamples, leaves_watches_a_quarter_of_the_budget) {
  EXPECT_DOUBLE_EQ(share_for_samples(0), 0.5);
  EXPECT_DOUBLE_EQ(share_for_samples(0.2), 0.5);
  EXPECT_DOUBLE_EQ(share_for_samples(0.4), 0.35);
  EXPECT_DOUBLE_EQ(share_for_samples(0.7), 0.5) << "upkeep leaves nothing for watches in any case";
}

TEST(Turns, take_a_fixed_part_of_the_budget_together) {
  Turns turns(0.03);
  EXPECT_DOUBLE_EQ(turns.cycle_ns(), 200e6);
  turns.review(4, 1);
  EXPECT_DOUBLE_EQ(turns.cycle_ns(), 200e6);
  turns.review(80, 1);
  EXPECT_NEAR(turns.cycle_ns(), 80 * 100e3 / (0.2 * 0.03), 1) << "100 us each is a guess";
  for (int turn = 0; turn < 10; ++turn) {
    turns.begin();
  }
  turns.charge(500'000);
  turns.review(80, 1);
  EXPECT_NEAR(turns.cycle_ns(), 80 * 50e3 / (0.2 * 0.03), 1);
  turns.review(80, 1);
  EXPECT_NEAR(turns.cycle_ns(), 80 * 50e3 / (0.2 * 0.03), 1) << "no turn since: the cost is known from before";
  turns.review(80, 0.8);
  EXPECT_NEAR(turns.cycle_ns(), 80 * 50e3 / (0.2 * 0.03 * 0.8), 1) << "threads that use 0.8 processors earn less";
  turns.review(100'000, 1);
  EXPECT_DOUBLE_EQ(turns.cycle_ns(), 2e9);
  EXPECT_DOUBLE_EQ(Turns(0.01).cycle_ns(), 600e6) << "a small budget";
}

TEST(SwitchPrice, is_what_was_measured_at_4_ms_and_bounded) {
  EXPECT_DOUBLE_EQ(switch_price(4000, 4 * ms), 4000);
  EXPECT_LT(switch_price(4000, 16 * ms), 4000);
  EXPECT_DOUBLE_EQ(switch_price(4000, 1), 14000);
}

}  // namespace
}  // namespace crosstalk::observer::sample_pace_test
