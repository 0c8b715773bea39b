// SPDX-License-Identifier: Apache-2.0
#include "collectors/memory_samples/event_pace.h"

#include <algorithm>

#include "base/random.h"
#include "collectors/memory_samples/perf_records.h"

namespace crosstalk::collectors {
namespace {

constexpr std::uint64_t first_pause_ns = 10'000'000;
constexpr std::uint64_t longest_pause_ns = 40'000'000;  // between two periods: each is a call to another processor
constexpr double largest_fall = 8;                      // from one period to the next: too short a period does harm,
constexpr double largest_rise = 4096;                   // too long a one only takes its time

}  // namespace

double period_by_chance(std::uint64_t& random) { return 1 - period_spread + 2 * period_spread * uniform(random); }

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
    missing_part_ = 0;
    return own;
  }
  const double part = static_cast<double>(running_ns) / static_cast<double>(enabled_ns);
  missing_part_ = 1 - part;
  constexpr double half = 0.5;  // rounded without libm, which a library in a target does without
  return static_cast<std::uint64_t>(static_cast<double>(own) / part + half);
}

void EventPace::look(std::uint64_t enabled_ns, std::uint64_t running_ns, bool shared_counters) {
  constexpr std::uint64_t long_enough_ns = 200'000'000;  // some dozens of the kernel's turns
  never_counted_ = running_ns == 0 && enabled_ns >= long_enough_ns;
  const std::uint64_t lately_ns = enabled_ns - std::min(enabled_ns_, enabled_ns);
  if (!shared_counters || running_ns == 0 || lately_ns < long_enough_ns) {
    return;
  }
  const std::uint64_t ran_ns = running_ns - std::min(running_ns_, running_ns);
  missing_part_ = 1 - static_cast<double>(std::min(ran_ns, lately_ns)) / static_cast<double>(lately_ns);
}

std::uint64_t EventPace::allowed(double period) const {
  constexpr double longest = 1e12;
  return allowed_period(event_, static_cast<std::uint64_t>(std::clamp(period, 1.0, longest)));
}

std::uint64_t EventPace::next_period(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t counted,
                                     std::uint64_t running_ns, std::uint64_t& random) {
  pause_ns_ = pause_ns_ == 0 ? first_pause_ns : std::min(pause_ns_ * 2, longest_pause_ns);
  due_ns_ = now_ns + pause_ns_;
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
  return event_.period_random ? period_ : allowed(static_cast<double>(period_) * period_by_chance(random));
}

}  // namespace crosstalk::collectors
