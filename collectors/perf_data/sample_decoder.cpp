// SPDX-License-Identifier: Apache-2.0
// Reads the fields in the order of perf_event_open(2).
#include <linux/perf_event.h>

#include <bit>
#include <bitset>

#include "collectors/perf_data/record_decoder.h"

namespace crosstalk::perf_data {
namespace {

// Not in the headers of Linux 6.1.
constexpr std::uint64_t branch_counters = std::uint64_t{1} << 19U;

/// Skips the counts of the event.
void skip_counts(ByteCursor& fields, std::uint64_t format) {
  const std::uint64_t per_counter = 1 + std::bitset<64>(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST)).count();
  const std::uint64_t times =
      std::bitset<64>(format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)).count();
  if ((format & PERF_FORMAT_GROUP) == 0) {
    fields.take_words(times + per_counter);
    return;
  }
  const auto counters = fields.take<std::uint64_t>();
  fields.take_words(counters > UINT16_MAX ? UINT64_MAX : times + counters * per_counter);  // a record has 64 KiB
}

SampledRegisters take_registers(ByteCursor& fields, std::uint64_t mask) {
  SampledRegisters registers;
  registers.abi = fields.take<std::uint64_t>();
  if (registers.abi != PERF_SAMPLE_REGS_ABI_NONE) {
    registers.mask = mask;
    registers.values = fields.take_words(static_cast<std::uint64_t>(std::popcount(mask)));
  }
  return registers;
}

void skip_branches(ByteCursor& fields, std::uint64_t branch_type) {
  constexpr std::uint64_t words = 3;  // of a branch
  const auto count = fields.take<std::uint64_t>();
  if ((branch_type & PERF_SAMPLE_BRANCH_HW_INDEX) != 0) {
    fields.take<std::uint64_t>();
  }
  fields.take_words(count > UINT16_MAX ? UINT64_MAX : count * words);
  if ((branch_type & branch_counters) != 0) {
    fields.take_words(count);
  }
}

void skip_stack(ByteCursor& fields) {
  const auto size = fields.take<std::uint64_t>();
  if (size != 0) {
    fields.take_bytes(size);
    fields.take<std::uint64_t>();  // how much of it is used
  }
}

void take_identity(ByteCursor& fields, const Attribute& attribute, Sample& sample, Identity& identity) {
  const auto word = [&](std::uint64_t field, std::uint64_t& value) {
    if (attribute.samples(field)) {
      value = fields.take<std::uint64_t>();
    }
  };
  std::uint64_t unused = 0;
  word(PERF_SAMPLE_IDENTIFIER, unused);
  word(PERF_SAMPLE_IP, sample.ip);
  if (attribute.samples(PERF_SAMPLE_TID)) {
    identity.pid = fields.take<std::int32_t>();
    identity.tid = fields.take<std::int32_t>();
  }
  word(PERF_SAMPLE_TIME, identity.time_ns);
  word(PERF_SAMPLE_ADDR, sample.address);
  word(PERF_SAMPLE_ID, unused);
  word(PERF_SAMPLE_STREAM_ID, unused);
  if (attribute.samples(PERF_SAMPLE_CPU)) {
    identity.cpu = fields.take<std::uint32_t>();
    fields.take<std::uint32_t>();  // reserved
  }
}

/// Fields whose length the sample itself says.
void take_arrays(ByteCursor& fields, const Attribute& attribute, Sample& sample) {
  if (attribute.samples(PERF_SAMPLE_READ)) {
    skip_counts(fields, attribute.read_format);
  }
  if (attribute.samples(PERF_SAMPLE_CALLCHAIN)) {
    sample.call_chain = fields.take_words(fields.take<std::uint64_t>());
  }
  if (attribute.samples(PERF_SAMPLE_RAW)) {
    fields.take_bytes(fields.take<std::uint32_t>());
  }
  if (attribute.samples(PERF_SAMPLE_BRANCH_STACK)) {
    skip_branches(fields, attribute.branch_sample_type);
  }
  if (attribute.samples(PERF_SAMPLE_REGS_USER)) {
    sample.user = take_registers(fields, attribute.registers_user);
  }
  if (attribute.samples(PERF_SAMPLE_STACK_USER)) {
    skip_stack(fields);
  }
}

}  // namespace

std::optional<Sample> decode_sample(ByteCursor fields, const Attribute& attribute, Identity& identity) {
  Sample sample;
  const auto word = [&](std::uint64_t field, std::uint64_t& value) {
    if (attribute.samples(field)) {
      value = fields.take<std::uint64_t>();
    }
  };
  take_identity(fields, attribute, sample, identity);
  sample.period = attribute.is_frequency() ? 0 : attribute.period_or_frequency;
  word(PERF_SAMPLE_PERIOD, sample.period);
  take_arrays(fields, attribute, sample);
  if (attribute.samples(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)) {
    const auto weight = fields.take<std::uint64_t>();
    sample.weight = attribute.samples(PERF_SAMPLE_WEIGHT) ? weight : weight & UINT32_MAX;
  }
  word(PERF_SAMPLE_DATA_SRC, sample.data_source);
  std::uint64_t unused = 0;
  word(PERF_SAMPLE_TRANSACTION, unused);
  if (attribute.samples(PERF_SAMPLE_REGS_INTR)) {
    sample.interrupted = take_registers(fields, attribute.registers_interrupted);
  }
  for (const std::uint64_t field :
       {PERF_SAMPLE_PHYS_ADDR, PERF_SAMPLE_CGROUP, PERF_SAMPLE_DATA_PAGE_SIZE, PERF_SAMPLE_CODE_PAGE_SIZE}) {
    word(field, unused);
  }
  if (attribute.samples(PERF_SAMPLE_AUX)) {
    fields.take_bytes(fields.take<std::uint64_t>());
  }
  return fields.whole() ? std::optional(sample) : std::nullopt;
}

}  // namespace crosstalk::perf_data
