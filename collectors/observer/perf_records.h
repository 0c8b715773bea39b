// SPDX-License-Identifier: Apache-2.0
// From the bytes of a perf ring to records: pure functions. The bytes are the kernel's, laid out as the events of
// perf_attributes.h ask for; they are checked all the same, since a ring that was overrun may begin anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "base/registers.h"

namespace crosstalk::observer {

/// What an event of ours has seen: a clock that ran out, or an access to a watched word.
struct PerfSample {
  std::uint64_t event = 0;  // the kernel's id of the event
  std::uint64_t ip = 0;     // where the processor was: in the kernel, if `in_kernel`
  std::int32_t pid = 0, tid = 0;
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t address = 0;  // of the watched word; 0 of a clock
  std::uint32_t cpu = 0;
  std::uint64_t count = 0;  // what the event has counted: a task clock's nanoseconds
  bool in_kernel = false;
  bool has_registers = false;
  Registers registers;  // of user mode; after a watched access, those behind its instruction
  std::uint64_t flags = 0;
  std::span<const std::byte> stack;  // from rsp upward; within the bytes that were parsed
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

/// monostate: of a kind that nobody asked for.
using PerfRecord = std::variant<std::monostate, PerfSample, PerfFork, PerfExit, PerfExec, PerfMap, PerfLost>;

struct ParsedRecord {
  PerfRecord record;
  std::size_t bytes = 0;  // in the ring, > 0
};

/// The record that `bytes` begin with; nothing where they can not be one.
[[nodiscard]] std::optional<ParsedRecord> parse_perf_record(std::span<const std::byte> bytes);

}  // namespace crosstalk::observer
