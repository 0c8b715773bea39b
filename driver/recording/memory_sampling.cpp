// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/memory_sampling.h"

#include <cerrno>
#include <cstring>

#include "collectors/observer/measured_samples.h"
#include "collectors/observer/perf_attributes.h"

namespace crosstalk::driver {
namespace {

using collectors::MemoryEvent;

// A record takes 550 bytes, one of IBS 620: the ring holds a dozen, and two or three arrive between two ticks.
constexpr std::uint32_t ring_bytes = 8192;
constexpr std::uint64_t first_period_longer = 8;
constexpr std::uint32_t stack_bytes = 256;  // a function's own stack data, and its caller

profile::MemoryEvent event_inside(const MemoryEvent& event) {
  profile::MemoryEvent inside{};
  inside.attr = observer::measuring_attributes(event, event.attr.sample_period);
  inside.attr.sample_stack_user = stack_bytes;
  inside.attr.wakeup_events = 0;  // nobody waits for it
  // A first period that is too long costs one tick to correct; one that is too short fills the ring until then.
  inside.attr.sample_period = collectors::allowed_period(event, first_period_longer * event.attr.sample_period);
  if (event.leader) {
    inside.leader = observer::leading_attributes(event);
    inside.has_leader = 1;
  }
  inside.source = event.source;
  inside.weight_unit = event.weight_unit;
  inside.accesses = static_cast<std::uint8_t>(event.accesses);
  inside.period_random = event.period_random ? 1 : 0;
  return inside;
}

std::string full_name(const MemoryEvent& event) {
  const bool whole = event.unit.empty() || event.name.find('/') != std::string::npos;
  return whole ? event.name : event.unit + (event.name == event.unit ? "//" : "/" + event.name + "/");
}

std::string words_of(profile::MemoryRefusal refusal, int error) {
  switch (refusal) {
    case profile::MemoryRefusal::descriptors:
      return "events take descriptors that the program cannot miss; from outside, --observer, it gives none";
    case profile::MemoryRefusal::locked_memory:
      return "rings of events keep to an eighth of the memory that the program may lock, and to what perf may; to "
             "allow "
             "more: ulimit -l, sudo sysctl kernel.perf_event_mlock_kb=N";
    case profile::MemoryRefusal::switches:
      return "they switched so often that the events would have cost more than the budget; a higher --budget helps";
    case profile::MemoryRefusal::kernel:
      return error == EDQUOT ? "rings of this user would take more memory than user_memory_kb of the IBS module"
                             : std::string("the kernel refused the events: ") + std::strerror(error);
    case profile::MemoryRefusal::none:
      break;
  }
  return {};
}

}  // namespace

std::string obstacle_inside(const std::vector<MemoryEvent>& events) {
  if (events.size() > profile::most_memory_events) {
    return std::to_string(events.size()) + " events are too many for what samples itself";
  }
  for (const MemoryEvent& event : events) {
    if (event.each_cpu) {
      return "the kernel takes " + full_name(event) +
             " for processors only, which is for what is watched from outside (Linux 6.2 takes it for threads)";
    }
    if (event.attr.sample_type != events.front().attr.sample_type) {
      return full_name(event) + " and " + full_name(events.front()) + " do not fit into one ring";
    }
  }
  return {};
}

profile::MemorySampling sampling_inside(const std::vector<MemoryEvent>& events) {
  profile::MemorySampling sampling;
  sampling.ring_bytes = ring_bytes;
  for (const MemoryEvent& event : events) {
    sampling.one_unit = event.unit == events.front().unit ? sampling.one_unit : 0;
    sampling.event[sampling.events++] = event_inside(event);
  }
  return sampling;
}

std::vector<profile::EventRow> number_events(std::vector<MemoryEvent>& events) {
  constexpr unsigned least_precise = 2;  // less precise events do not identify the instruction
  std::vector<profile::EventRow> rows;
  for (MemoryEvent& event : events) {
    event.number = static_cast<std::uint8_t>(rows.size() + 1);
    profile::EventRow row;
    row.id = profile::EventId{event.number};
    row.name = full_name(event);
    row.source = event.source;
    row.unit = event.weight_unit;
    row.least_latency_cycles = event.least_latency;
    row.at_access = event.source == profile::SourceKind::ibs || event.source == profile::SourceKind::ibs_kmod ||
                    event.attr.precise_ip >= least_precise;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<profile::MessageRow> remarks_on_memory(const profile::MemoryCounts& counts, bool watchdog) {
  const auto value = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  constexpr double permille = 1000;
  observer::MeasuredSamples samples;
  samples.accesses = value(counts.accesses);
  samples.in_kernel = value(counts.in_kernel);
  samples.without_access = value(counts.without_access);
  samples.half_updates = value(counts.half_updates);
  samples.lost = value(counts.lost);
  samples.throttled = value(counts.throttled);
  samples.counting_part = 1 - value(counts.missing_permille) / permille;
  samples.watchdog = watchdog;
  samples.without_counter = value(counts.without_counter);
  samples.clock_alone = value(counts.clock_alone);
  if (samples.clock_alone != 0) {
    samples.refusal = words_of(static_cast<profile::MemoryRefusal>(value(counts.refusal)), value(counts.refusal_error));
  }
  return observer::remarks_on(samples);
}

}  // namespace crosstalk::driver
