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

std::uint64_t first_expiry(std::uint64_t period_ns, std::uint64_t& random) { return 1 + draw_below(period_ns, random); }

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

}  // namespace crosstalk::watch_policy
