// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/memory_sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t longest_pause_ns = 40'000'000;  // between two periods: each is a call to another processor
constexpr double largest_fall = 8;                      // from one period to the next: too short a period does harm,
constexpr double largest_rise = 4096;                   // too long a one only takes its time
constexpr double spread = 0.25;                         // of a period, to both sides

/// Evenly from 1 - spread to 1 + spread.
double by_chance(std::uint64_t& random) {
  return 1 - spread + 2 * spread * (static_cast<double>(next_random(random) >> 11U) * 0x1p-53);
}

}  // namespace

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
  return event_->period_random ? period_ : allowed(static_cast<double>(period_) * by_chance(random));
}

Result<MemorySampler> MemorySampler::open(const MemoryEvents& events, SamplingPlace place, const Periods& periods,
                                          std::uint64_t& random) {
  MemorySampler sampler;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const collectors::MemoryEvent& event = events[i];
    sampler.one_unit_ = sampler.one_unit_ && event.unit == events.front().unit;
    const std::uint64_t period = i < periods.size() ? periods[i] : event.attr.sample_period;
    if (Result<void> added = sampler.add(event, place, period, random); !added) {
      return tl::unexpected<Error>(added.error());
    }
  }
  return sampler;
}

/// The first period is drawn like the others, so that where the first sample falls is chance.
Result<void> MemorySampler::add(const collectors::MemoryEvent& event, SamplingPlace place, std::uint64_t period,
                                std::uint64_t& random) {
  Open open{std::nullopt, {}, EventPace(event, period)};
  const auto first = static_cast<std::uint64_t>(static_cast<double>(period) * by_chance(random));
  if (event.leader) {
    Result<OpenEvent> leader = open_measuring(leading_attributes(event), place.tid, place.cpu, nullptr);
    if (!leader) {
      return tl::unexpected<Error>(leader.error());
    }
    open.leader = std::move(*leader);
  }
  Result<OpenEvent> measuring = open_measuring(measuring_attributes(event, collectors::allowed_period(event, first)),
                                               place.tid, place.cpu, open.leader ? &*open.leader : nullptr);
  if (!measuring) {
    return tl::unexpected<Error>(measuring.error());
  }
  open.event = std::move(*measuring);
  if (Result<void> ring = provide_ring(open.event, layout_of(event)); !ring) {
    return ring;
  }
  events_.push_back(std::move(open));
  return {};
}

/// Into the ring of another one that says the same, where the kernel lets it.
Result<void> MemorySampler::provide_ring(const OpenEvent& event, const SampleLayout& layout) {
  for (const Ring& ring : rings_) {
    if (ring.layout.fields == layout.fields && write_into_ring(event, ring.fd)) {
      return {};
    }
  }
  Result<PerfRing> ring = map_ring(event);
  if (!ring) {
    return tl::unexpected<Error>(ring.error());
  }
  rings_.push_back({std::move(*ring), event.fd.get(), layout});
  return {};
}

void MemorySampler::enable() {
  for (const Open& open : events_) {
    enable_event(open.leader ? *open.leader : open.event);
  }
}

const collectors::MemoryEvent* MemorySampler::weigh(const PerfSample& sample, std::uint64_t& weight) {
  const auto found =
      std::find_if(events_.begin(), events_.end(), [&](const Open& open) { return open.event.id == sample.event; });
  if (found == events_.end()) {
    return nullptr;
  }
  weight = found->pace.weigh(sample, one_unit_);
  return &found->pace.event();
}

void MemorySampler::keep_pace(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t& random) {
  for (Open& open : events_) {
    EventPace& pace = open.pace;
    if (!pace.due(now_ns)) {
      continue;
    }
    EventCounts counts{pace.counted(), 0, pace.running_ns()};
    if (!pace.sampled()) {
      counts = read_counts(open.event);
    }
    set_event_period(open.event, pace.next_period(now_ns, wanted_ns, counts.count, counts.running_ns, random));
  }
}

MemorySampler::Periods MemorySampler::periods() const {
  Periods periods;
  for (const Open& open : events_) {
    periods.push_back(open.pace.period());
  }
  return periods;
}

double MemorySampler::counting_part() const {
  double least = 1;
  for (const Open& open : events_) {
    least = std::min(least, open.pace.counting_part());
  }
  return least;
}

}  // namespace crosstalk::observer
