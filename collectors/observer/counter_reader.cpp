// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/counter_reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace crosstalk::observer {
namespace {

constexpr std::uint32_t ring_pages = 4;  // for some hundred readings

/// The contents of a group's descriptor: the kernel's layout, with as many counts as there may be.
struct GroupCounts {
  std::uint64_t counters = 0, enabled_ns = 0, running_ns = 0;
  std::array<std::uint64_t, profile::most_group_counters> counts{};
};
/// Returns zeros if it cannot be read.
GroupCounts read_group(const OpenEvent& leader) {
  GroupCounts counts;
  return ::read(leader.fd.get(), &counts, sizeof counts) > 0 ? counts : GroupCounts{};
}

}  // namespace

Result<CounterReader> CounterReader::open(const CounterGroups& groups, pid_t tid, std::uint32_t life,
                                          std::uint64_t& random) {
  CounterReader reader;
  reader.life_ = life;
  for (const collectors::CounterGroup& group : groups) {
    if (Result<void> added = reader.add(group, tid, random); !added) {
      return tl::unexpected<Error>(added.error());
    }
  }
  return reader;
}

/// All groups write into the ring of the first one.
Result<void> CounterReader::add(const collectors::CounterGroup& group, pid_t tid, std::uint64_t& random) {
  auto leader = std::make_unique<collectors::MemoryEvent>();
  leader->attr = group.events.front().attr;
  leader->source = profile::SourceKind::counter;
  const std::uint64_t period = leader->attr.sample_period;
  Group open{{}, nullptr, EventPace(*leader, period)};
  open.leader = std::move(leader);
  for (const collectors::CounterEvent& event : group.events) {
    perf_event_attr attributes = event.attr;
    if (open.events.empty()) {  // the first reading comes at random, as with the others
      const double drawn = static_cast<double>(period) * period_by_chance(random);
      attributes.sample_period = collectors::allowed_period(*open.leader, static_cast<std::uint64_t>(drawn));
    }
    constexpr int any_cpu = -1;
    Result<OpenEvent> opened =
        open_measuring(attributes, tid, any_cpu, open.events.empty() ? nullptr : &open.events.front());
    if (!opened) {
      return tl::unexpected<Error>(opened.error());
    }
    open.events.push_back(std::move(*opened));
  }
  if (!ring_) {
    Result<PerfRing> ring = PerfRing::map(open.events.front().fd.get(), ring_pages);
    if (!ring) {
      return tl::unexpected<Error>(ring.error());
    }
    ring_.emplace(std::move(*ring));
  } else if (!write_into_ring(open.events.front(), groups_.front().events.front().fd.get())) {
    return fail(ErrorCode::system, "the kernel does not let groups of counters share a ring");
  }
  groups_.push_back(std::move(open));
  return {};
}

void CounterReader::enable() {
  for (const Group& group : groups_) {
    enable_event(group.events.front());
  }
}

void CounterReader::take(const CounterSample& sample, ArenaRing& records, CounterTally& tally) {
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const Group& group) { return group.events.front().id == sample.event; });
  if (found == groups_.end() || sample.counts.size() != found->events.size()) {
    ++tally.lost;
    return;
  }
  PerfSample cycles;
  cycles.count = sample.counts.front();
  cycles.enabled_ns = sample.enabled_ns;
  cycles.running_ns = sample.running_ns;
  (void)found->pace.weigh(cycles, true);
  profile::CounterReading record;
  record.header.type = profile::RecordType::counter_reading;
  record.time_ns = sample.time_ns;
  record.ip = sample.ip;
  record.enabled_ns = sample.enabled_ns;
  record.running_ns = std::min(sample.running_ns, sample.enabled_ns);
  record.life = life_;
  record.group = static_cast<std::uint16_t>(found - groups_.begin() + 1);
  record.cpu = static_cast<std::uint16_t>(sample.cpu);
  tally.readings += records.write(record, sample.counts.data(), sample.counts.size() * sizeof(std::uint64_t)) ? 1 : 0;
}

std::uint64_t CounterReader::drain(ArenaRing& records, CounterTally& tally) {
  std::vector<std::byte> bytes;
  tally.lost += ring_->drain(bytes) ? 0 : 1;
  std::uint64_t taken = 0;
  for (std::span<const std::byte> rest(bytes); !rest.empty();) {
    const auto parsed = parse_counter_record(rest);
    if (!parsed) {
      ++tally.lost;
      break;
    }
    rest = rest.subspan(parsed->bytes);
    if (const auto* sample = std::get_if<CounterSample>(&parsed->record)) {
      take(*sample, records, tally);
      ++taken;
    } else if (const auto* lost = std::get_if<PerfLost>(&parsed->record)) {
      tally.lost += lost->records;
    } else if (const auto* throttle = std::get_if<PerfThrottle>(&parsed->record)) {
      tally.throttled += throttle->begins ? 1 : 0;
    }
  }
  return taken;
}

void CounterReader::keep_pace(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t& random) {
  for (Group& group : groups_) {
    EventPace& pace = group.pace;
    if (!pace.due(now_ns)) {
      continue;
    }
    std::uint64_t counted = pace.counted();
    std::uint64_t running_ns = pace.running_ns();
    if (!pace.sampled()) {
      const GroupCounts counts = read_group(group.events.front());
      counted = counts.counts.front();
      running_ns = counts.running_ns;
    }
    set_event_period(group.events.front(), pace.next_period(now_ns, wanted_ns, counted, running_ns, random));
  }
}

void CounterReader::account(CounterTally& tally) const {
  constexpr std::uint64_t long_enough_ns = 200'000'000;
  for (const Group& group : groups_) {
    const GroupCounts counts = read_group(group.events.front());
    tally.enabled_ns += counts.enabled_ns;
    tally.running_ns += counts.running_ns;
    tally.never += counts.running_ns == 0 && counts.enabled_ns >= long_enough_ns ? 1 : 0;
  }
}

CounterTally CounterTally::since(const CounterTally& before) const {
  return {readings - before.readings,     lost - before.lost,
          throttled - before.throttled,   enabled_ns - before.enabled_ns,
          running_ns - before.running_ns, without - before.without,
          never - before.never,           refusal};
}

std::vector<profile::MessageRow> remarks_on(const CounterTally& tally) {
  std::vector<profile::MessageRow> remarks;
  const auto say = [&](bool holds, const char* code, std::string text, std::uint64_t count) {
    if (holds) {
      remarks.push_back({code, std::move(text), std::max<std::uint64_t>(count, 1)});
    }
  };
  say(tally.without != 0, "counters_not_read",
      std::to_string(tally.without) + " threads' hardware counters were not read: " + tally.refusal, tally.without);
  const bool watchdog = collectors::nmi_watchdog_is_on();
  say(tally.never != 0, "counters_never_counted",
      std::to_string(tally.never) + " groups of hardware counters never had theirs: something else holds them" +
          (watchdog ? ", as the kernel's NMI watchdog does one; to free that: sudo sysctl kernel.nmi_watchdog=0"
                    : "; end what else measures, or ask for fewer with --counters"),
      tally.never);
  constexpr double noticeable = 0.98;
  const double part =
      tally.enabled_ns != 0 ? static_cast<double>(tally.running_ns) / static_cast<double>(tally.enabled_ns) : 1;
  say(part < noticeable, "counters_multiplexed",
      "groups of hardware counters took turns: each counted for " + std::to_string(std::lround(part * 100)) +
          " % of the time on average, and stands for the rest; fewer at once, by --counters, are surer",
      1);
  say(tally.throttled != 0, "counters_throttled",
      "the kernel has stopped the reading of hardware counters " + std::to_string(tally.throttled) +
          " times, since it came more often than kernel.perf_event_max_sample_rate; a longer --period helps",
      tally.throttled);
  say(tally.lost != 0, "counter_readings_lost",
      std::to_string(tally.lost) + " readings of hardware counters were lost: they came faster than they were taken",
      tally.lost);
  return remarks;
}

}  // namespace crosstalk::observer
