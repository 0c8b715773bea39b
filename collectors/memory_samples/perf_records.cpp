// SPDX-License-Identifier: Apache-2.0
#include "collectors/memory_samples/perf_records.h"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>

#include "base/byte_cursor.h"
#include "collectors/perf_registers.h"

namespace crosstalk::collectors {
namespace {

constexpr unsigned perf_register_numbers = PERF_REG_X86_64_MAX;

constexpr bool every_sampled_register_is_known() {
  for (unsigned number = 0; number < perf_register_numbers; ++number) {
    const bool sampled = (sampled_registers >> number & 1U) != 0;
    if (sampled && number != PERF_REG_X86_FLAGS && !register_of(number)) {
      return false;
    }
  }
  return true;
}
static_assert(every_sampled_register_is_known());

void take_registers(ByteCursor& fields, PerfSample& sample) {
  const auto abi = fields.take<std::uint64_t>();
  if (abi == PERF_SAMPLE_REGS_ABI_NONE) {
    return;
  }
  for (unsigned number = 0; number < perf_register_numbers; ++number) {
    if ((sampled_registers >> number & 1U) == 0) {
      continue;
    }
    const auto value = fields.take<std::uint64_t>();
    if (const auto ours = register_of(number)) {
      sample.registers[*ours] = value;
    } else {
      sample.flags = value;
    }
  }
  sample.has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
}

void take_stack(ByteCursor& fields, PerfSample& sample) {
  const auto size = fields.take<std::uint64_t>();
  if (size == 0) {
    return;
  }
  const std::span<const std::byte> bytes = fields.take_bytes(size);
  const auto used = fields.take<std::uint64_t>();
  sample.stack = used <= bytes.size() ? bytes.first(used) : std::span<const std::byte>();
}

std::span<const std::byte> take_raw(ByteCursor& fields) {
  const auto size = fields.take<std::uint32_t>();
  return fields.take_bytes(size);
}

void take_count(ByteCursor& fields, bool with_times, PerfSample& sample) {
  sample.count = fields.take<std::uint64_t>();
  if (with_times) {
    sample.enabled_ns = fields.take<std::uint64_t>();
    sample.running_ns = fields.take<std::uint64_t>();
  }
}

/// Returns the latency from a weight of one part, or of three, of which the first is the latency.
std::uint32_t latency_of(std::uint64_t weight, bool in_parts) {
  constexpr std::uint64_t most = UINT32_MAX;
  return static_cast<std::uint32_t>(in_parts ? weight & most : std::min(weight, most));
}

// Reads the fields in the order of perf_event_open(2).
PerfSample parse_sample(ByteCursor& fields, std::uint16_t misc, const SampleLayout& layout) {
  const auto has = [&](std::uint64_t field) { return (layout.fields & field) != 0; };
  PerfSample sample;
  sample.event = fields.take<std::uint64_t>();
  sample.ip = fields.take<std::uint64_t>();
  sample.pid = fields.take<std::int32_t>();
  sample.tid = fields.take<std::int32_t>();
  sample.time_ns = fields.take<std::uint64_t>();
  sample.address = fields.take<std::uint64_t>();
  sample.cpu = fields.take<std::uint32_t>();
  fields.take<std::uint32_t>();
  sample.period = has(PERF_SAMPLE_PERIOD) ? fields.take<std::uint64_t>() : 0;
  take_count(fields, layout.with_times, sample);
  sample.raw = has(PERF_SAMPLE_RAW) ? take_raw(fields) : std::span<const std::byte>();
  sample.in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER;
  sample.exact_ip = (misc & PERF_RECORD_MISC_EXACT_IP) != 0;
  take_registers(fields, sample);
  take_stack(fields, sample);
  if (has(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)) {
    sample.latency_cycles = latency_of(fields.take<std::uint64_t>(), has(PERF_SAMPLE_WEIGHT_STRUCT));
  }
  sample.data_source = has(PERF_SAMPLE_DATA_SRC) ? fields.take<std::uint64_t>() : 0;
  return sample;
}

PerfRecord parse_body(const perf_event_header& header, ByteCursor& fields, const SampleLayout& layout) {
  switch (header.type) {
    case PERF_RECORD_SAMPLE:
      return parse_sample(fields, header.misc, layout);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
      PerfFork fork;
      fork.pid = fields.take<std::int32_t>();
      fork.parent_pid = fields.take<std::int32_t>();
      fork.tid = fields.take<std::int32_t>();
      fork.parent_tid = fields.take<std::int32_t>();
      fork.time_ns = fields.take<std::uint64_t>();
      if (header.type == PERF_RECORD_EXIT) {
        return PerfExit{fork.pid, fork.tid, fork.time_ns};
      }
      return fork;
    }
    case PERF_RECORD_COMM: {
      PerfExec exec;
      exec.pid = fields.take<std::int32_t>();
      exec.tid = fields.take<std::int32_t>();
      return (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0 ? PerfRecord(exec) : PerfRecord();
    }
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
      return PerfMap{fields.take<std::int32_t>()};
    case PERF_RECORD_LOST: {
      fields.take<std::uint64_t>();  // the event's id
      return PerfLost{fields.take<std::uint64_t>()};
    }
    case PERF_RECORD_LOST_SAMPLES:
      return PerfLost{fields.take<std::uint64_t>()};
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
      return PerfThrottle{fields.take<std::uint64_t>(), header.type == PERF_RECORD_THROTTLE};
    default:
      return {};
  }
}

}  // namespace

std::optional<ParsedRecord> parse_perf_record(std::span<const std::byte> bytes, const SampleLayout& layout) {
  perf_event_header header{};
  if (bytes.size() < sizeof header) {
    return std::nullopt;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  constexpr std::size_t alignment = 8;
  if (header.size < sizeof header || header.size % alignment != 0 || header.size > bytes.size()) {
    return std::nullopt;
  }
  ByteCursor fields(bytes.subspan(sizeof header, header.size - sizeof header));
  PerfRecord record = parse_body(header, fields, layout);
  if (!fields.whole()) {
    return std::nullopt;
  }
  return ParsedRecord{record, header.size};
}

}  // namespace crosstalk::collectors
