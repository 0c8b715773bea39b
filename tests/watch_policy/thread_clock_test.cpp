// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/thread_clock.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace crosstalk::watch_policy::thread_clock_test {
namespace {

constexpr std::uint64_t us = 1000;
constexpr std::uint64_t ms = 1000 * us;

/// Returns the time that samples of threads of one length stand for, as a part of their CPU time, if the first one
/// comes at `first(phase)` and weighs `period`. Threads have few samples: those after the first are a period apart.
template <class First>
double represented(std::uint64_t life_ns, std::uint64_t period_ns, First first) {
  constexpr int threads = 200'000;
  double stands_for = 0;
  for (int thread = 0; thread < threads; ++thread) {
    for (std::uint64_t at = first(); at < life_ns; at += period_ns) {
      stands_for += static_cast<double>(period_ns);
    }
  }
  return stands_for / (static_cast<double>(life_ns) * threads);
}

TEST(FirstExpiry, samples_stand_for_all_the_time_of_threads_of_any_length_but_its_beginning) {
  std::uint64_t random = 7;
  for (const std::uint64_t life : {100 * us, ms, 3 * ms, 17 * ms}) {
    const double sampled = static_cast<double>(life - shortest_expiry_ns) / static_cast<double>(life);
    EXPECT_NEAR(represented(life, 10 * ms, [&] { return first_expiry(10 * ms, random); }), sampled, 0.05) << life;
  }
}

TEST(FirstExpiry, so_they_do_where_expiries_are_seen_at_ticks) {
  constexpr std::uint64_t tick = 4 * ms;
  std::uint64_t random = 11;
  for (const std::uint64_t period : {ms, 4 * ms, 8 * ms, 10 * ms}) {
    const auto first = [&] {
      const std::uint64_t phase = next_random(random) % tick;  // of the first tick in the thread's life
      const std::uint64_t expiry = first_tick(period, tick, random);
      return (expiry + tick - 1 - phase) / tick * tick + phase;
    };
    for (const std::uint64_t life : {100 * us, ms, 3 * ms}) {
      EXPECT_NEAR(represented(life, std::max(period, tick), first), 1, 0.05) << period << " " << life;
    }
  }
}

TEST(FirstExpiry, is_never_0_which_would_stop_the_clock_nor_so_soon_that_the_kernel_does_nothing_else) {
  std::uint64_t random = 3;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_GT(first_tick(ms, 4 * ms, random), 0U);
    EXPECT_GE(first_expiry(1, random), shortest_expiry_ns);
    EXPECT_LT(first_expiry(ms, random), shortest_expiry_ns + ms);
  }
}

TEST(ThreadLives, are_brief_once_threads_have_ended_soon) {
  ThreadLives lives;
  EXPECT_FALSE(lives.brief(4 * ms)) << "nothing is known";
  for (int i = 0; i < 3; ++i) {
    lives.ended(ms, 2);
  }
  EXPECT_TRUE(lives.brief(4 * ms));
  for (int i = 0; i < 30; ++i) {
    lives.ended(1000 * ms, 2);
  }
  EXPECT_FALSE(lives.brief(4 * ms));
  EXPECT_NEAR(lives.mean_switches(), 2, 0.2);
  lives.clear();
  EXPECT_EQ(lives.mean_ns(), 0U);
}

TEST(ThreadLives, of_no_time_at_all_are_known_too) {
  ThreadLives lives;
  lives.ended(0, 0);
  EXPECT_TRUE(lives.brief(4 * ms));
}

TEST(FineClock, is_afforded_at_the_period_that_the_budget_leaves) {
  const FineClockCost cost{10 * us, 30 * us};
  EXPECT_EQ(affordable_period(cost, ms, 100 * us, 4 * ms, 0.03), 1500 * us) << "30 us a thread less 10 us for opening";
  EXPECT_EQ(affordable_period(cost, 20 * ms, 100 * us, 4 * ms, 0.5), 100 * us) << "never shorter than wanted";
  EXPECT_EQ(affordable_period(cost, ms / 2, 100 * us, 4 * ms, 0.015), 0U) << "opening one is too dear";
}

TEST(BriefClock, is_every_threads_where_that_can_be_afforded) {
  const FineClockCost cost{10 * us, 30 * us};
  const BriefClock clock = brief_clock(cost, ms, 100 * us, 4 * ms, 0.03);
  EXPECT_EQ(clock.period_ns, 1500 * us);
  EXPECT_EQ(clock.one_in, 1U);
}

TEST(BriefClock, is_drawn_for_as_many_threads_as_can_be_afforded) {
  const FineClockCost cost{40 * us, 20 * us};
  const BriefClock clock = brief_clock(cost, ms, 4 * ms, 4 * ms, 0.015);
  EXPECT_EQ(clock.period_ns, 500 * us) << "its samples cost as much as to have it";
  EXPECT_EQ(clock.one_in, 8U) << "no more samples than are wanted";
  EXPECT_EQ(brief_clock(cost, ms, ms, 4 * ms, 0.015).one_in, 6U) << "80 us at 15 us a thread";
  EXPECT_EQ(brief_clock(cost, ms, 100 * ms, 4 * ms, 0.015).one_in, 200U) << "no more samples than are wanted";
  EXPECT_EQ(brief_clock(cost, 20 * us, 4 * ms, 4 * ms, 0.0015).period_ns, 0U) << "too dear for one in many";
  EXPECT_EQ(brief_clock(cost, 0, 4 * ms, 4 * ms, 0.015).period_ns, 0U) << "lives of no time";
}

TEST(BriefClock, of_the_drawn_stands_for_the_time_of_all_however_long_each_lives) {
  std::uint64_t random = 5;
  const std::uint64_t mean_life = ms;
  constexpr std::uint64_t tick = 4 * ms;
  const BriefClock clock = brief_clock({40 * us, 20 * us}, mean_life, 4 * ms, tick, 0.015);
  const std::uint64_t alone = alone_from(mean_life, tick);
  for (const std::uint64_t life : {ms, 5 * ms, 12 * ms, 40 * ms}) {
    double stands = 0;
    constexpr int threads = 200'000;
    for (int thread = 0; thread < threads; ++thread) {
      const bool drawn = is_drawn(clock.one_in, random);
      std::uint64_t last = 0;
      std::uint64_t at = drawn ? first_expiry(clock.period_ns, random) : alone + first_expiry(tick, random);
      while (at < life) {
        const std::uint64_t first = drawn ? clock.period_ns * clock.one_in : tick;
        const std::uint64_t own = drawn ? stands_for(last, at, clock.one_in, alone) : at - last;
        stands += static_cast<double>(last == 0 ? first : own);
        last = at;
        at += drawn && at < alone ? clock.period_ns : tick;
      }
    }
    EXPECT_NEAR(stands / (static_cast<double>(life) * threads), 1, 0.05) << life;
  }
}

TEST(BriefClock, stands_for_others_only_up_to_an_age) {
  EXPECT_EQ(stands_for(2 * ms, 3 * ms, 10, 8 * ms), 10 * ms);
  EXPECT_EQ(stands_for(7 * ms, 9 * ms, 10, 8 * ms), 11 * ms);
  EXPECT_EQ(stands_for(9 * ms, 11 * ms, 10, 8 * ms), 2 * ms);
  EXPECT_EQ(stands_for(9 * ms, 11 * ms, 1, 0), 2 * ms);
}

}  // namespace
}  // namespace crosstalk::watch_policy::thread_clock_test
