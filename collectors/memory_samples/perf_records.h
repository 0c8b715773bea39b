// SPDX-License-Identifier: Apache-2.0
// From the bytes of a perf ring to records: pure functions. The bytes are the kernel's, laid out as our events
// ask for (sample_layout.h); they are checked all the same, since a ring that was overrun may begin anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "base/registers.h"
#include "collectors/memory_samples/sample_layout.h"

namespace crosstalk::collectors {

/// A sample of an event of ours: a clock that ran out, an access to a watched word, or a sampled access.
struct PerfSample {
  std::uint64_t event = 0;  // the kernel's id of the event
  std::uint64_t ip = 0;     // the processor's instruction pointer: in the kernel, if `in_kernel`
  std::int32_t pid = 0, tid = 0;
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t address = 0;  // of the watched word, or of the sampled access; 0 of a clock
  std::uint32_t cpu = 0;
  std::uint64_t count = 0;  // the event's count: a task clock's nanoseconds
  bool in_kernel = false;
  bool has_registers = false;
  Registers registers;  // of user mode; after a watched access, those behind its instruction
  std::uint64_t flags = 0;
  std::span<const std::byte> stack;  // from rsp upward; within the bytes that were parsed
  // Fields of sampled accesses only:
  bool exact_ip = false;             // `ip` is the instruction that was sampled, not one some way behind it
  std::uint64_t period = 0;          // that the event had until now
  std::uint64_t enabled_ns = 0;      // how long the event was to count so far,
  std::uint64_t running_ns = 0;      // and how long it had a counter
  std::uint32_t latency_cycles = 0;  // 0: not known
  std::uint64_t data_source = 0;     // perf_mem_data_src
  std::span<const std::byte> raw;    // further data of the unit; within the bytes that were parsed
};

/// A thread has begun (`pid` is its process's).
struct PerfFork {
  std::int32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
  std::uint64_t time_ns = 0;
};

struct PerfExit {
  std::int32_t pid = 0, tid = 0;
  std::uint64_t time_ns = 0;
};

/// The process executes another program.
struct PerfExec {
  std::int32_t pid = 0, tid = 0;
};

/// Code has been mapped.
struct PerfMap {
  std::int32_t pid = 0;
};

/// The ring was full.
struct PerfLost {
  std::uint64_t records = 0;
};

/// The kernel has stopped sampling, since there were more samples than its limits allow, or goes on.
struct PerfThrottle {
  std::uint64_t time_ns = 0;
  bool begins = false;
};

/// monostate: of a kind that nobody asked for.
using PerfRecord =
    std::variant<std::monostate, PerfSample, PerfFork, PerfExit, PerfExec, PerfMap, PerfLost, PerfThrottle>;

struct ParsedRecord {
  PerfRecord record;
  std::size_t bytes = 0;  // in the ring, > 0
};

/// Returns the record at the beginning of `bytes`; nothing if they cannot be one.
[[nodiscard]] std::optional<ParsedRecord> parse_perf_record(std::span<const std::byte> bytes,
                                                            const SampleLayout& layout = {});

}  // namespace crosstalk::collectors
