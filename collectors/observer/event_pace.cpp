// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/event_pace.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t longest_pause_ns = 40'000'000;  // between two periods: each is a call to another processor
constexpr double largest_fall = 8;                      // from one period to the next: too short a period does harm,
constexpr double largest_rise = 4096;                   // too long a one only takes its time

}  // namespace

double period_by_chance(std::uint64_t& random) {
  return 1 - period_spread + 2 * period_spread * (static_cast<double>(next_random(random) >> 11U) * 0x1p-53);
}

std::uint64_t EventPace::weigh(const PerfSample& sample, bool shared_counters) {
  const std::uint64_t counted = sample.count - std::min(count_, sample.count);
  const std::uint64_t enabled_ns = sample.enabled_ns - std::min(enabled_ns_, sample.enabled_ns);
  const std::uint64_t running_ns = sample.running_ns - std::min(running_ns_, sample.running_ns);
  count_ = std::max(count_, sample.count);
  enabled_ns_ = std::max(enabled_ns_, sample.enabled_ns);
  running_ns_ = std::max(running_ns_, sample.running_ns);
  ++taken_;
  const std::uint64_t own = counted != 0 ? counted : std::max<std::uint64_t>(sample.period, 1);
  if (!shared_counters || running_ns == 0 || enabled_ns <= running_ns) {
    part_ = 1;
    return own;
  }
  part_ = static_cast<double>(running_ns) / static_cast<double>(enabled_ns);
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(own) / part_));
}

std::uint64_t EventPace::allowed(double period) const {
  constexpr double longest = 1e12;
  const auto whole = static_cast<std::uint64_t>(std::clamp(std::floor(period), 1.0, longest));
  return collectors::allowed_period(*event_, whole);
}

std::uint64_t EventPace::next_period(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t counted,
                                     std::uint64_t running_ns, std::uint64_t& random) {
  due_ns_ = now_ns + pause_ns_;
  pause_ns_ = std::min(pause_ns_ * 2, longest_pause_ns);
  const std::uint64_t passed_ns = running_ns - std::min(paced_running_ns_, running_ns);
  if (passed_ns != 0 && (taken_ != 0 || passed_ns >= wanted_ns)) {
    const auto happened = static_cast<double>(counted - std::min(paced_count_, counted));
    const double aim = happened / static_cast<double>(passed_ns) * static_cast<double>(wanted_ns);
    const auto now = static_cast<double>(period_);
    period_ = allowed(std::clamp(aim, now / largest_fall, now * largest_rise));
    paced_count_ = counted;
    paced_running_ns_ = running_ns;
  }
  taken_ = 0;
  return event_->period_random ? period_ : allowed(static_cast<double>(period_) * period_by_chance(random));
}

}  // namespace crosstalk::observer
