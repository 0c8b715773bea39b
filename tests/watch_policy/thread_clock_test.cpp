// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/thread_clock.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace crosstalk::watch_policy {
namespace {

constexpr std::uint64_t us = 1000;
constexpr std::uint64_t ms = 1000 * us;

/// What the samples of threads of one length stand for, as a part of their CPU time, when the first one comes at
/// `first(phase)` and weighs `period`. Few samples a thread: those after the first are a period apart.
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

TEST(FirstExpiry, samples_stand_for_all_the_time_of_threads_of_any_length) {
  std::uint64_t random = 7;
  for (const std::uint64_t life : {100 * us, ms, 3 * ms, 17 * ms}) {
    EXPECT_NEAR(represented(life, 10 * ms, [&] { return first_expiry(10 * ms, random); }), 1, 0.05) << life;
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

TEST(FirstExpiry, is_never_0_which_would_stop_the_clock) {
  std::uint64_t random = 3;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_GT(first_tick(ms, 4 * ms, random), 0U);
    EXPECT_GT(first_expiry(1, random), 0U);
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

}  // namespace
}  // namespace crosstalk::watch_policy
