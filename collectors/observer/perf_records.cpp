// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/perf_records.h"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>

#include <array>
#include <cstring>

#include "collectors/observer/perf_attributes.h"

namespace crosstalk::observer {
namespace {

/// Takes fields off the front of a record's body; once one is missing, all are.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T take() {
    T value{};
    const std::span<const std::byte> from = take_bytes(sizeof value);
    if (!from.empty()) {
      std::memcpy(&value, from.data(), sizeof value);
    }
    return value;
  }
  std::span<const std::byte> take_bytes(std::uint64_t count) {
    if (count > bytes_.size()) {
      whole_ = false;
      bytes_ = {};
      return {};
    }
    const std::span<const std::byte> taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  [[nodiscard]] bool whole() const { return whole_; }

 private:
  std::span<const std::byte> bytes_;
  bool whole_ = true;
};

struct KernelRegister {
  int number;  // the kernel's, whose order is that of the fields
  Register ours;
};
constexpr std::array<KernelRegister, sampled_register_count> register_fields = {{
    {PERF_REG_X86_AX, Register::rax},
    {PERF_REG_X86_BX, Register::rbx},
    {PERF_REG_X86_CX, Register::rcx},
    {PERF_REG_X86_DX, Register::rdx},
    {PERF_REG_X86_SI, Register::rsi},
    {PERF_REG_X86_DI, Register::rdi},
    {PERF_REG_X86_BP, Register::rbp},
    {PERF_REG_X86_SP, Register::rsp},
    {PERF_REG_X86_IP, Register::rip},
    {PERF_REG_X86_FLAGS, Register::rip},  // not among ours: it is kept apart
    {PERF_REG_X86_R8, Register::r8},
    {PERF_REG_X86_R9, Register::r9},
    {PERF_REG_X86_R10, Register::r10},
    {PERF_REG_X86_R11, Register::r11},
    {PERF_REG_X86_R12, Register::r12},
    {PERF_REG_X86_R13, Register::r13},
    {PERF_REG_X86_R14, Register::r14},
    {PERF_REG_X86_R15, Register::r15},
}};

constexpr std::uint64_t mask_of_fields() {
  std::uint64_t mask = 0;
  for (const KernelRegister& field : register_fields) {
    mask |= std::uint64_t{1} << static_cast<unsigned>(field.number);
  }
  return mask;
}
static_assert(mask_of_fields() == sampled_registers);

void take_registers(Fields& fields, PerfSample& sample) {
  const auto abi = fields.take<std::uint64_t>();
  if (abi == PERF_SAMPLE_REGS_ABI_NONE) {
    return;
  }
  for (const KernelRegister& field : register_fields) {
    const auto value = fields.take<std::uint64_t>();
    if (field.number == PERF_REG_X86_FLAGS) {
      sample.flags = value;
    } else {
      sample.registers[field.ours] = value;
    }
  }
  sample.has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
}

void take_stack(Fields& fields, PerfSample& sample) {
  const auto size = fields.take<std::uint64_t>();
  if (size == 0) {
    return;
  }
  const std::span<const std::byte> bytes = fields.take_bytes(size);
  const auto used = fields.take<std::uint64_t>();
  sample.stack = used <= bytes.size() ? bytes.first(used) : std::span<const std::byte>();
}

// The order of the fields is that of perf_event_open(2), for `sample_fields`.
PerfSample parse_sample(Fields& fields, std::uint16_t misc) {
  PerfSample sample;
  sample.event = fields.take<std::uint64_t>();
  sample.ip = fields.take<std::uint64_t>();
  sample.pid = fields.take<std::int32_t>();
  sample.tid = fields.take<std::int32_t>();
  sample.time_ns = fields.take<std::uint64_t>();
  sample.address = fields.take<std::uint64_t>();
  sample.cpu = fields.take<std::uint32_t>();
  fields.take<std::uint32_t>();
  sample.count = fields.take<std::uint64_t>();
  sample.in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER;
  take_registers(fields, sample);
  take_stack(fields, sample);
  return sample;
}

PerfRecord parse_body(const perf_event_header& header, Fields& fields) {
  switch (header.type) {
    case PERF_RECORD_SAMPLE:
      return parse_sample(fields, header.misc);
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
    default:
      return {};
  }
}

}  // namespace

std::optional<ParsedRecord> parse_perf_record(std::span<const std::byte> bytes) {
  perf_event_header header{};
  if (bytes.size() < sizeof header) {
    return std::nullopt;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  constexpr std::size_t alignment = 8;
  if (header.size < sizeof header || header.size % alignment != 0 || header.size > bytes.size()) {
    return std::nullopt;
  }
  Fields fields(bytes.subspan(sizeof header, header.size - sizeof header));
  PerfRecord record = parse_body(header, fields);
  if (!fields.whole()) {
    return std::nullopt;
  }
  return ParsedRecord{record, header.size};
}

}  // namespace crosstalk::observer
