// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/thread_clock.h"

#include <algorithm>

#include "base/random.h"

namespace crosstalk::watch_policy {
namespace {

constexpr std::uint64_t brief_ticks = 8;  // two samples after which a thread may change its clock, and some to use it
constexpr std::uint64_t memory = 8;       // threads
constexpr std::uint64_t part_of_switch = 64;

/// Evenly in [0, below); `below` is a time, far below 2^43.
std::uint64_t draw_below(std::uint64_t below, std::uint64_t& random) {
  constexpr unsigned bits = 21;
  return below * (next_random(random) >> (64U - bits)) >> bits;
}

}  // namespace

std::uint64_t first_tick(std::uint64_t period_ns, std::uint64_t tick_ns, std::uint64_t& random) {
  const std::uint64_t drawn_ns = draw_below(std::max(period_ns, tick_ns), random);
  return std::max<std::uint64_t>(drawn_ns / tick_ns * tick_ns, 1);
}

std::uint64_t first_expiry(std::uint64_t period_ns, std::uint64_t& random) {
  return shortest_expiry_ns + draw_below(period_ns, random);
}

void ThreadLives::ended(std::uint64_t cpu_ns, std::uint64_t switches) {
  const std::uint64_t before = mean_ns();
  const auto mean_with = [&](std::uint64_t mean, std::uint64_t one) {
    return before == 0 ? one : mean - mean / memory + one / memory;
  };
  const std::uint64_t switches_before = mean_switches_.load(std::memory_order_relaxed);
  mean_switches_.store(mean_with(switches_before, switches * part_of_switch), std::memory_order_relaxed);
  mean_ns_.store(std::max<std::uint64_t>(mean_with(before, cpu_ns), 1), std::memory_order_relaxed);
}

void ThreadLives::clear() {
  mean_ns_.store(0, std::memory_order_relaxed);
  mean_switches_.store(0, std::memory_order_relaxed);
}

double ThreadLives::mean_switches() const {
  return static_cast<double>(mean_switches_.load(std::memory_order_relaxed)) / part_of_switch;
}

bool ThreadLives::brief(std::uint64_t tick_ns) const {
  const std::uint64_t mean = mean_ns();
  return mean != 0 && mean < brief_ticks * tick_ns;
}

std::uint64_t affordable_period(const FineClockCost& cost, std::uint64_t life_ns, std::uint64_t wanted_ns,
                                std::uint64_t tick_ns, double allowed) {
  const double for_samples = allowed * static_cast<double>(life_ns) - static_cast<double>(cost.open_ns);
  if (for_samples <= 0) {
    return 0;
  }
  const double least_ns = static_cast<double>(life_ns) * static_cast<double>(cost.sample_ns) / for_samples;
  const double period_ns = std::max(least_ns, static_cast<double>(wanted_ns));
  return period_ns < static_cast<double>(tick_ns) ? static_cast<std::uint64_t>(period_ns) : 0;
}

BriefClock brief_clock(const FineClockCost& cost, std::uint64_t life_ns, std::uint64_t wanted_ns, std::uint64_t tick_ns,
                       double allowed) {
  constexpr std::uint64_t shortest_period_ns = 100'000;
  constexpr double most = 256;  // threads that one stands for
  const std::uint64_t affordable_ns = affordable_period(cost, life_ns, wanted_ns, tick_ns, allowed);
  if (affordable_ns != 0) {
    return {affordable_ns, 1};
  }
  // The fewest samples are lost to the clock if its samples cost as much as having one.
  const auto life = static_cast<double>(std::max<std::uint64_t>(life_ns, 1));
  const auto open = static_cast<double>(std::max<std::uint64_t>(cost.open_ns, 1));
  const auto sample = static_cast<double>(cost.sample_ns);
  const double period = std::clamp(life * sample / open, static_cast<double>(shortest_period_ns),
                                   static_cast<double>(std::max(tick_ns, shortest_period_ns)));
  const double by_cost = (open + life * sample / period) / (allowed * life);
  const double one_in = std::max({by_cost, static_cast<double>(wanted_ns) / period, 1.0});
  if (one_in > most) {
    return {};
  }
  const auto whole = static_cast<std::uint64_t>(one_in);
  return {static_cast<std::uint64_t>(period), static_cast<double>(whole) < one_in ? whole + 1 : whole};
}

bool is_drawn(std::uint64_t one_in, std::uint64_t& random) { return draw_below(one_in, random) == 0; }

std::uint64_t alone_from(std::uint64_t life_ns, std::uint64_t tick_ns) {
  constexpr std::uint64_t lives = 4;
  constexpr std::uint64_t ticks = 2;
  return std::max(lives * life_ns, ticks * tick_ns);
}

std::uint64_t stands_for(std::uint64_t last_ns, std::uint64_t now_ns, std::uint64_t one_in,
                         std::uint64_t alone_from_ns) {
  const std::uint64_t for_many = std::min(now_ns, alone_from_ns) - std::min(last_ns, alone_from_ns);
  return now_ns - last_ns + (one_in - 1) * for_many;
}

}  // namespace crosstalk::watch_policy
