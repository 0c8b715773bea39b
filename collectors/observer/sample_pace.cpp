// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/sample_pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t longest_period_ns = 64'000'000;
constexpr double memory = 16;  // samples
constexpr double usual_ns = 4e6;
// In a window: with a shorter period, samples would take most of the thread's time.
constexpr std::uint64_t shortest_in_windows_ns = 80'000;

constexpr double usual_budget = 0.03;
constexpr double least_budget = 1e-3;
constexpr double usual_cycle_ns = 200e6;
constexpr double longest_by_budget = 5;  // times the usual cycle
constexpr double longest_cycle_ns = 2e9;

}  // namespace

double share_for_samples(double upkeep) {
  constexpr double usual = 0.5;
  constexpr double least = 0.1;
  constexpr double for_watches = 0.25;
  const double left = 1 - for_watches - upkeep;
  return left < least ? usual : std::min(left, usual);
}

SamplePace::SamplePace(std::uint64_t wanted_ns, double allowed, double guess_ns)
    : wanted_ns_(wanted_ns), allowed_(allowed), cost_ns_(guess_ns) {}

std::uint64_t SamplePace::review(const SampledSpell& spell) {
  constexpr double most = 4;  // times the known cost: a few samples of a bad moment do not decide
  if (spell.ticks != 0) {
    const auto ticks = static_cast<double>(spell.ticks);
    const double seen_ns = std::min(spell.cost_ns / ticks, most * cost_ns_);
    cost_ns_ += (seen_ns - cost_ns_) * ticks / (ticks + memory);
  }
  const double affordable_ns = allowed_ > 0 ? cost_ns_ / allowed_ : static_cast<double>(longest_period_ns);
  const double longest_ns = static_cast<double>(std::max(longest_period_ns, wanted_ns_));
  return static_cast<std::uint64_t>(std::clamp(affordable_ns, static_cast<double>(wanted_ns_), longest_ns));
}

/// The kernel sets the processor's timer at a switch if the clock is the next to ring, which is rarer for a longer
/// period. With a short one it does so at each switch. Two threads that hand each other a byte on one processor (AMD
/// EPYC, a virtual machine, Linux 6.18), us more a switch: 1.0 with 16 ms, 2.0 with 8, 4.0 with 4, 10 with 2, 11.4 with
/// 1 and 0.5, 13.3 with 0.2, 14.5 with 0.1.
double switch_price(double at_4_ms_ns, std::uint64_t period_ns) {
  constexpr double most = 3.5;
  const double times = std::sqrt(usual_ns / static_cast<double>(std::max<std::uint64_t>(period_ns, 1)));
  return at_4_ms_ns * std::min(times, most);
}

ClockWindows clock_windows(const ClockCosts& cost, std::uint64_t period_ns, double allowed) {
  const auto part_with = [&](std::uint64_t period) {
    const double sampling = cost.sample_ns / static_cast<double>(std::max<std::uint64_t>(period, 1));
    return allowed / (sampling + cost.switches_per_ns * switch_price(cost.switch_ns, period));
  };
  if (!(part_with(period_ns) < 1)) {
    return {1, period_ns};
  }
  // As few switches a sample as possible, but no more samples than without windows.
  std::uint64_t shorter_ns = std::min(shortest_in_windows_ns, period_ns);
  while (part_with(shorter_ns) * static_cast<double>(period_ns) > static_cast<double>(shorter_ns)) {
    shorter_ns = std::min(shorter_ns + shorter_ns / 4 + 1, period_ns);
  }
  return {std::clamp(part_with(shorter_ns), least_part, 1.0), shorter_ns};
}

Turns::Turns(double budget)
    : budget_(std::max(budget, least_budget)),
      usual_ns_(usual_cycle_ns * std::clamp(usual_budget / budget_, 1.0, longest_by_budget)),
      cycle_ns_(usual_ns_) {}

void Turns::review(std::size_t resting, double busy) {
  constexpr double share = 0.2;  // of the budget
  if (count_ != 0) {
    cost_ns_ = std::exchange(spent_ns_, 0) / static_cast<double>(std::exchange(count_, 0));
  }
  const double affordable_ns = static_cast<double>(resting) * cost_ns_ / (share * budget_ * busy);
  cycle_ns_ = std::clamp(affordable_ns, usual_ns_, std::max(usual_ns_, longest_cycle_ns));
}

void ClockedShare::expect_windows(double window_ns) {
  if (!windowed_) {
    window_ns_ = window_ns;
    scale_ = 1;
    owed_ns_ = 0;
  }
  windowed_ = true;
}

void ClockedShare::begin_window(double ran_ns) {
  constexpr double least_window_ns = 10'000;
  owed_ns_ = std::max(ran_ns - handed_ns_, 0.0);
  scale_ = std::max(owed_ns_ / std::max(window_ns_, least_window_ns), 1.0);
}

void ClockedShare::end_window(double clocked_ns) {
  constexpr double windows = 4;  // that are remembered
  window_ns_ += (clocked_ns - window_ns_) / windows;
}

double ClockedShare::take(double clocked_ns) {
  const double times = scale();
  const double stands_for_ns = times > 1 ? clocked_ns + std::min(clocked_ns * (times - 1), owed_ns_) : clocked_ns;
  handed_ns_ += stands_for_ns;
  owed_ns_ -= stands_for_ns;
  return stands_for_ns;
}

}  // namespace crosstalk::observer
