// SPDX-License-Identifier: Apache-2.0
// The records of a perf.data file, decoded. Passive data: texts and arrays are views of the bytes that were decoded,
// and live as long as those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/byte_cursor.h"

namespace crosstalk::perf_data {

/// Numbers that perf gives its own records, beyond the kernel's PERF_RECORD_*.
enum UserRecord : std::uint32_t {
  user_record_first = 64,
  header_attribute = 64,
  header_tracing_data = 66,
  header_build_id = 67,
  finished_round = 68,
  auxtrace = 71,
  event_update = 78,
  header_feature = 80,
  compressed = 81,
  compressed2 = 83,
};

/// "MMAP2", "SAMPLE", ...; "of type 99" for one that is not known.
[[nodiscard]] std::string record_name(std::uint32_t type);

/// The place of a record, for errors. A decompressed record has the place of the record that it was in.
struct Place {
  std::uint64_t offset = 0;  // in the file
  bool decompressed = false;
};

/// The thread and time of a record. Fields that an event does not report keep these values.
struct Identity {
  std::int32_t pid = -1, tid = -1;
  std::uint64_t time_ns = 0;  // 0: not known; else of the clock that the recording used
  std::uint32_t cpu = UINT32_MAX;
};

/// Registers as the machine's perf_regs.h numbers them: those of the event's mask, lowest first.
struct SampledRegisters {
  std::uint64_t abi = 0;  // PERF_SAMPLE_REGS_ABI_*; 0: there are none
  std::uint64_t mask = 0;
  WordView values;
};

struct Sample {
  std::size_t event = 0;  // index into Events
  std::uint64_t ip = 0, address = 0;
  std::uint64_t period = 0;
  std::uint64_t weight = 0;       // of the old layout all of it; else its first part, which is the latency
  std::uint64_t data_source = 0;  // perf_mem_data_src
  WordView call_chain;            // innermost first, with PERF_CONTEXT_* between
  SampledRegisters user, interrupted;
};

/// MMAP and MMAP2.
struct Mapping {
  std::int32_t pid = 0;  // -1: of the kernel
  std::uint64_t begin = 0, bytes = 0, file_offset = 0;
  std::uint64_t inode = 0, inode_generation = 0;
  std::span<const std::byte> build_id;  // empty: the record has none
  std::uint32_t protection = 0;
  bool has_protection = false;  // MMAP2
  bool is_data = false;         // not executable
  std::string_view name;
};

struct Comm {
  std::int32_t pid = 0, tid = 0;
  std::string_view name;
  bool exec = false;  // the process executes another program
};

struct Fork {
  std::int32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
  bool exec = false;  // made up by perf for a process that was there: it has mappings of its own
};

struct Exit {
  std::int32_t pid = 0, tid = 0;
};

/// LOST and LOST_SAMPLES.
struct Lost {
  std::uint64_t count = 0;
};

/// Too many samples came: the kernel leaves some out from here on.
struct Throttle {};

/// The build id of a mapped file, by its name.
struct BuildId {
  std::int32_t pid = -1;  // -1: of all processes
  std::span<const std::byte> bytes;
  std::string_view name;
  bool of_kernel = false;
};

/// A sample of an event that the file does not describe.
struct UnknownSample {
  std::uint64_t id = 0;
};

/// A record of no use here: of `type`.
struct Other {};

using Content = std::variant<Other, Sample, Mapping, Comm, Fork, Exit, Lost, Throttle, BuildId, UnknownSample>;

struct Record {
  Place place;
  std::uint32_t type = 0;
  std::uint16_t misc = 0;  // PERF_RECORD_MISC_*
  Identity identity;
  Content content;
};

}  // namespace crosstalk::perf_data
