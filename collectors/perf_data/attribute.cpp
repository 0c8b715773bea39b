// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/attribute.h"

#include <linux/perf_event.h>

#include <array>
#include <cstdio>
#include <iterator>

namespace crosstalk::perf_data {
namespace {

std::uint8_t reversed(std::uint8_t bits) {
  std::uint8_t result = 0;
  for (unsigned bit = 0; bit < 8; ++bit) {
    result = static_cast<std::uint8_t>(result | (bits >> bit & 1U) << (7U - bit));
  }
  return result;
}

/// Bit fields begin at the lowest bit of the first byte on little-endian machines, at the highest on big-endian ones.
std::uint64_t take_flags(ByteCursor& bytes) {
  if (bytes.order() == ByteOrder::little) {
    return bytes.take<std::uint64_t>();
  }
  std::uint64_t flags = 0;
  for (unsigned i = 0; i < sizeof flags; ++i) {
    flags |= std::uint64_t{reversed(bytes.take<std::uint8_t>())} << (8 * i);
  }
  // `precise_ip` is the only one of two bits, and its own order is turned, too.
  constexpr unsigned low = 15, high = 16;
  const std::uint64_t both = std::uint64_t{1} << low | std::uint64_t{1} << high;
  const std::uint64_t turned = (flags >> low & 1U) << high | (flags >> high & 1U) << low;
  return (flags & ~both) | turned;
}

Attribute take_fields(ByteCursor& fields) {
  Attribute attribute;
  attribute.type = fields.take<std::uint32_t>();
  fields.take<std::uint32_t>();  // size
  attribute.config = fields.take<std::uint64_t>();
  attribute.period_or_frequency = fields.take<std::uint64_t>();
  attribute.sample_type = fields.take<std::uint64_t>();
  attribute.read_format = fields.take<std::uint64_t>();
  attribute.flags = take_flags(fields);
  fields.take<std::uint32_t>();  // wakeup_events
  fields.take<std::uint32_t>();  // bp_type
  attribute.config1 = fields.take<std::uint64_t>();
  fields.take<std::uint64_t>();  // config2
  attribute.branch_sample_type = fields.take<std::uint64_t>();
  attribute.registers_user = fields.take<std::uint64_t>();
  fields.take<std::uint32_t>();  // sample_stack_user
  fields.take<std::int32_t>();   // clockid
  attribute.registers_interrupted = fields.take<std::uint64_t>();
  return attribute;
}

constexpr std::array<const char*, 10> hardware_names = {
    "cycles",        "instructions", "cache-references",        "cache-misses",           "branches",
    "branch-misses", "bus-cycles",   "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"};
constexpr std::array<const char*, 12> software_names = {
    "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
    "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
    "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};

}  // namespace

Result<Attribute> take_attribute(ByteCursor& bytes, std::uint64_t limit) {
  constexpr std::size_t head = 8;  // type and size
  ByteCursor ahead = bytes;
  ahead.take<std::uint32_t>();
  std::uint64_t size = ahead.take<std::uint32_t>();
  if (size == 0) {
    size = least_attribute_bytes;  // the size that the first versions wrote
  }
  if (bytes.rest() < head || size < least_attribute_bytes || size > limit || size > bytes.rest()) {
    return fail(ErrorCode::corrupt, "an event's attribute has " + std::to_string(size) + " bytes and may have " +
                                        std::to_string(least_attribute_bytes) + " to " +
                                        std::to_string(limit < bytes.rest() ? limit : bytes.rest()));
  }
  ByteCursor fields(bytes.take_bytes(size), bytes.order());
  return take_fields(fields);
}

std::string name_of(const Attribute& attribute) {
  constexpr std::uint64_t event_bits = 0xffffffff;  // above them, which of a hybrid's processors
  const std::uint64_t event = attribute.config & event_bits;
  if (attribute.type == PERF_TYPE_HARDWARE && event < hardware_names.size()) {
    return hardware_names[event];
  }
  if (attribute.type == PERF_TYPE_SOFTWARE && event < software_names.size()) {
    return software_names[event];
  }
  char text[64];
  if (attribute.type == PERF_TYPE_RAW) {
    std::snprintf(text, std::size(text), "r%llx", static_cast<unsigned long long>(attribute.config));
  } else {
    std::snprintf(text, std::size(text), "type %u, config 0x%llx", attribute.type,
                  static_cast<unsigned long long>(attribute.config));
  }
  return text;
}

}  // namespace crosstalk::perf_data
