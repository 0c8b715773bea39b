// SPDX-License-Identifier: Apache-2.0
#include "collectors/memory_samples/ibs_op.h"

#include <array>
#include <cstring>

namespace crosstalk::collectors {
namespace {

// The kernel writes the capabilities (32 bits), then these registers.
enum : std::size_t { op_control, op_rip, op_data, op_data2, op_data3, data_address, register_number };
using OpRegisters = std::array<std::uint64_t, register_number>;

struct Field {
  unsigned first, bits;
};
constexpr Field rip_invalid{38, 1};  // of op_data
// Fields of op_data3:
constexpr Field is_load{0, 1}, is_store{1, 1}, missed_cache{7, 1}, address_valid{17, 1}, is_prefetch{21, 1};
constexpr Field width_code{22, 4}, miss_latency{32, 16};

std::uint64_t field(std::uint64_t word, Field place) {
  return word >> place.first & ((std::uint64_t{1} << place.bits) - 1);
}

/// 1 means a byte, each number more twice as many.
std::uint8_t width_of(std::uint64_t code) {
  constexpr std::uint64_t widest = 7;  // 64 bytes
  return code == 0 || code > widest ? 0 : static_cast<std::uint8_t>(1U << (code - 1));
}

}  // namespace

std::optional<IbsOp> decode_ibs_op(std::span<const std::byte> raw) {
  constexpr std::size_t capability_bytes = sizeof(std::uint32_t);
  OpRegisters registers{};
  if (raw.size() < capability_bytes + sizeof registers) {
    return std::nullopt;
  }
  std::memcpy(registers.data(), raw.data() + capability_bytes, sizeof registers);
  const std::uint64_t data3 = registers[op_data3];
  IbsOp op;
  op.ip = field(registers[op_data], rip_invalid) != 0 ? 0 : registers[op_rip];
  const bool load = field(data3, is_load) != 0 && field(data3, is_prefetch) == 0;
  const bool store = field(data3, is_store) != 0;
  if ((!load && !store) || field(data3, address_valid) == 0) {
    return op;
  }
  op.address = registers[data_address];
  op.kind = static_cast<AccessKind>((load ? 1U : 0U) | (store ? 2U : 0U));
  op.width = width_of(field(data3, width_code));
  op.missed = field(data3, missed_cache) != 0;
  op.latency_cycles = load && op.missed ? static_cast<std::uint32_t>(field(data3, miss_latency)) : 0;
  return op;
}

}  // namespace crosstalk::collectors
