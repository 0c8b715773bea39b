// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/counter_records.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>

#include "profile/counter_reading.h"

namespace crosstalk::observer {
namespace {

// A sample's fields, in the order of perf_event_open(2), up to the counts of the group.
struct SampleHead {
  std::uint64_t event = 0, ip = 0;
  std::int32_t pid = 0, tid = 0;
  std::uint64_t time_ns = 0;
  std::uint32_t cpu = 0, reserved = 0;
  std::uint64_t counters = 0, enabled_ns = 0, running_ns = 0;
};
static_assert(sizeof(SampleHead) == 64);

/// False: there are too few bytes.
template <class T>
bool copy_head(std::span<const std::byte> bytes, T& head) {
  if (bytes.size() < sizeof head) {
    return false;
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  return true;
}

std::optional<CounterRecord> parse_sample(std::span<const std::byte> body) {
  SampleHead head;
  if (!copy_head(body, head) || head.counters > profile::most_group_counters ||
      body.size() - sizeof head < head.counters * sizeof(std::uint64_t)) {
    return std::nullopt;
  }
  CounterSample sample{head.event, head.ip, head.tid, head.time_ns, head.cpu, head.enabled_ns, head.running_ns, {}};
  sample.counts.resize(head.counters);
  // Not by memcpy(): the vector of a group without counters has a null pointer.
  const auto counts = std::as_writable_bytes(std::span(sample.counts));
  std::ranges::copy(body.subspan(sizeof head, counts.size()), counts.begin());
  return sample;
}

std::optional<CounterRecord> parse_lost(std::span<const std::byte> body) {
  struct {
    std::uint64_t event = 0, records = 0;
  } head;
  return copy_head(body, head) ? std::optional<CounterRecord>(PerfLost{head.records}) : std::nullopt;
}

std::optional<CounterRecord> parse_throttle(std::span<const std::byte> body, bool begins) {
  std::uint64_t time_ns = 0;
  return copy_head(body, time_ns) ? std::optional<CounterRecord>(PerfThrottle{time_ns, begins}) : std::nullopt;
}

}  // namespace

std::optional<ParsedCounterRecord> parse_counter_record(std::span<const std::byte> bytes) {
  perf_event_header header{};
  constexpr std::size_t alignment = 8;
  if (!copy_head(bytes, header) || header.size < sizeof header || header.size % alignment != 0 ||
      header.size > bytes.size()) {
    return std::nullopt;
  }
  const std::span<const std::byte> body = bytes.subspan(sizeof header, header.size - sizeof header);
  std::optional<CounterRecord> record = CounterRecord();
  switch (header.type) {
    case PERF_RECORD_SAMPLE:
      record = parse_sample(body);
      break;
    case PERF_RECORD_LOST:
      record = parse_lost(body);
      break;
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
      record = parse_throttle(body, header.type == PERF_RECORD_THROTTLE);
      break;
    default:
      break;
  }
  return record ? std::optional(ParsedCounterRecord{std::move(*record), header.size}) : std::nullopt;
}

}  // namespace crosstalk::observer
