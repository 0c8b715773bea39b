// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/memory_sampler.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace crosstalk::observer {

MemoryEvents those_of(const MemoryEvents& events, bool each_cpu) {
  MemoryEvents chosen;
  std::copy_if(events.begin(), events.end(), std::back_inserter(chosen),
               [each_cpu](const collectors::MemoryEvent& event) { return event.each_cpu == each_cpu; });
  return chosen;
}

Result<MemorySampler> MemorySampler::open(const MemoryEvents& events, SamplingPlace place, const Periods& periods,
                                          std::uint64_t& random) {
  MemorySampler sampler;
  if (events.front().source == profile::SourceKind::ibs_kmod) {
    const std::uint64_t period = periods.empty() ? events.front().attr.sample_period : periods.front();
    Result<ModuleSampler> module = ModuleSampler::open(events.front(), place.tid, period);
    if (!module) {
      return tl::unexpected<Error>(module.error());
    }
    sampler.module_ = std::move(*module);
    return sampler;
  }
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

/// The first period is drawn like the others, so that the first sample comes at random.
Result<void> MemorySampler::add(const collectors::MemoryEvent& event, SamplingPlace place, std::uint64_t period,
                                std::uint64_t& random) {
  Open open{&event, std::nullopt, {}, EventPace(event, period)};
  const auto first = static_cast<std::uint64_t>(static_cast<double>(period) * period_by_chance(random));
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

/// Sends the event's records to a ring with the same layout if the kernel allows it, else to one of its own.
Result<void> MemorySampler::provide_ring(const OpenEvent& event, const SampleLayout& layout) {
  for (const Ring& ring : rings_) {
    if (ring.layout.fields == layout.fields && write_into_ring(event, ring.fd)) {
      return {};
    }
  }
  Result<PerfRing> ring = map_ring(event, usual_ring_pages);
  if (!ring) {
    return tl::unexpected<Error>(ring.error());
  }
  rings_.push_back({std::move(*ring), event.fd.get(), layout});
  return {};
}

void MemorySampler::enable() {
  if (module_) {
    module_->enable();
  }
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
  return found->what;
}

void MemorySampler::keep_pace(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t& random) {
  if (module_) {
    module_->keep_pace(now_ns, wanted_ns, random);
  }
  for (Open& open : events_) {
    EventPace& pace = open.pace;
    if (!pace.due(now_ns)) {
      continue;
    }
    EventCounts counts{pace.counted(), 0, pace.running_ns()};
    if (!pace.sampled()) {
      counts = read_counts(open.event);
      pace.look(counts.enabled_ns, counts.running_ns, one_unit_);
    }
    set_event_period(open.event, pace.next_period(now_ns, wanted_ns, counts.count, counts.running_ns, random));
  }
}

MemorySampler::Periods MemorySampler::periods() const {
  Periods periods;
  if (module_) {
    periods.push_back(module_->period());
  }
  for (const Open& open : events_) {
    periods.push_back(open.pace.period());
  }
  return periods;
}

bool MemorySampler::account(MeasuredSamples& all) {
  for (Open& open : events_) {
    const EventCounts counts = read_counts(open.event);
    open.pace.look(counts.enabled_ns, counts.running_ns, one_unit_);
  }
  all.counting_part = std::min(all.counting_part, counting_part());
  return lacks_counter();
}

bool MemorySampler::lacks_counter() const {
  const auto never =
      std::count_if(events_.begin(), events_.end(), [](const Open& o) { return o.pace.never_counted(); });
  return collectors::lacks_counter(static_cast<std::size_t>(never), events_.size(), one_unit_);
}

double MemorySampler::counting_part() const {
  double least = 1;
  for (const Open& open : events_) {
    least = std::min(least, open.pace.counting_part());
  }
  return least;
}

}  // namespace crosstalk::observer
