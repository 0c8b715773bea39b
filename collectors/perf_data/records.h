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

#include "collectors/perf_data/byte_cursor.h"

namespace crosstalk::perf_data {

/// Numbers that perf gives its own records, beyond the kernel's PERF_RECORD_*.
enum UserRecord : std::uint32_t {
  user_record_first = 64,
  header_attribute = 64,
  header_event_type = 65,
  header_tracing_data = 66,
  header_build_id = 67,
  finished_round = 68,
  id_index = 69,
  auxtrace_info = 70,
  auxtrace = 71,
  auxtrace_error = 72,
  thread_map = 73,
  cpu_map = 74,
  stat_config = 75,
  stat = 76,
  stat_round = 77,
  event_update = 78,
  time_conversion = 79,
  header_feature = 80,
  compressed = 81,
  finished_init = 82,
  compressed2 = 83,
  bpf_metadata = 84,
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
  std::uint64_t id = 0, stream_id = 0;
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
  std::uint64_t weight = 0;  // of the old layout all of it; else its first part, which is the latency
  std::uint16_t weight2 = 0, weight3 = 0;
  std::uint64_t data_source = 0;  // perf_mem_data_src
  std::uint64_t transaction = 0, physical_address = 0, cgroup = 0, data_page_bytes = 0, code_page_bytes = 0;
  WordView counts;      // the data that the event's read_format describes, unchanged
  WordView call_chain;  // innermost first, with PERF_CONTEXT_* between
  std::span<const std::byte> raw;
  WordView branches;  // from, to and flags of each, the latest first
  SampledRegisters user, interrupted;
  std::span<const std::byte> stack;  // from the user's stack pointer upward
  std::span<const std::byte> aux;
};

/// MMAP and MMAP2.
struct Mapping {
  std::int32_t pid = 0, tid = 0;  // pid -1: of the kernel
  std::uint64_t begin = 0, bytes = 0, file_offset = 0;
  std::uint32_t device_major = 0, device_minor = 0;
  std::uint64_t inode = 0, inode_generation = 0;
  std::span<const std::byte> build_id;  // empty: the record has none
  std::uint32_t protection = 0, flags = 0;
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
  std::uint64_t time_ns = 0;
  bool exec = false;  // made up by perf for a process that was there: it has mappings of its own
};

struct Exit {
  std::int32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
  std::uint64_t time_ns = 0;
};

/// LOST, and LOST_SAMPLES where `samples_only`.
struct Lost {
  std::uint64_t id = 0, count = 0;
  bool samples_only = false;
};

struct Throttle {
  std::uint64_t time_ns = 0, id = 0, stream_id = 0;
  bool begins = false;
};

struct Read {
  std::int32_t pid = 0, tid = 0;
  WordView counts;
};

struct Aux {
  std::uint64_t offset = 0, bytes = 0, flags = 0;
};

struct AuxTraceStart {
  std::int32_t pid = 0, tid = 0;
};

struct Switch {
  bool out = false, preempted = false;
  bool has_other = false;  // in a recording of whole processors: the thread that comes next, or was before
  std::int32_t other_pid = 0, other_tid = 0;
};

struct Namespaces {
  std::int32_t pid = 0, tid = 0;
  WordView links;  // device and inode of each
};

struct KernelSymbol {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint16_t type = 0, flags = 0;
  std::string_view name;
};

struct BpfEvent {
  std::uint16_t type = 0, flags = 0;
  std::uint32_t id = 0;
};

struct Cgroup {
  std::uint64_t id = 0;
  std::string_view path;
};

struct TextPoke {
  std::uint64_t address = 0;
  std::span<const std::byte> before, after;
};

struct AuxHardwareId {
  std::uint64_t id = 0;
};

/// The build id of a mapped file, by its name.
struct BuildId {
  std::int32_t pid = -1;  // -1: of all processes
  std::span<const std::byte> bytes;
  std::string_view name;
  bool of_kernel = false;
};

struct TimeConversion {
  std::uint64_t shift = 0, multiplier = 0, zero = 0;
};

/// A sample of an event that the file does not describe.
struct UnknownSample {
  std::uint64_t id = 0;
};

/// A record without data on threads, memory or code: of `type`.
struct Other {};

using Content =
    std::variant<Other, Sample, Mapping, Comm, Fork, Exit, Lost, Throttle, Read, Aux, AuxTraceStart, Switch, Namespaces,
                 KernelSymbol, BpfEvent, Cgroup, TextPoke, AuxHardwareId, BuildId, TimeConversion, UnknownSample>;

struct Record {
  Place place;
  std::uint32_t type = 0;
  std::uint16_t misc = 0;  // PERF_RECORD_MISC_*
  Identity identity;
  Content content;
};

}  // namespace crosstalk::perf_data
