// SPDX-License-Identifier: Apache-2.0
// From the bytes of a ring of counters to readings: pure functions. The bytes are the kernel's, laid out as
// collectors/pmu/counter_groups.cpp asks for; they are checked all the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "collectors/observer/perf_types.h"

namespace crosstalk::observer {

/// The counts of a group of counters when its leader took a sample.
struct CounterSample {
  std::uint64_t event = 0;  // the kernel's id of the leader
  std::uint64_t ip = 0;
  std::int32_t tid = 0;
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::uint32_t cpu = 0;
  std::uint64_t enabled_ns = 0, running_ns = 0;
  std::vector<std::uint64_t> counts;  // in the order in which the group's events were opened
};

/// monostate: of a kind that nobody asked for.
using CounterRecord = std::variant<std::monostate, CounterSample, PerfLost, PerfThrottle>;

struct ParsedCounterRecord {
  CounterRecord record;
  std::size_t bytes = 0;  // in the ring, > 0
};

/// Returns the record at the beginning of `bytes`; nothing if they cannot be one.
[[nodiscard]] std::optional<ParsedCounterRecord> parse_counter_record(std::span<const std::byte> bytes);

}  // namespace crosstalk::observer
