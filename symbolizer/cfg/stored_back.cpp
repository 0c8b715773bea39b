// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/stored_back.h"

#include "symbolizer/cfg/instructions.h"
#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

constexpr int most_instructions = 16;

bool changes(const Decoded& decoded, const ZydisDecodedOperandMem& memory) {
  return writes(decoded, memory.base) || writes(decoded, memory.index);
}

/// Displacement of an operand; for rip it is relative to the end of the instruction.
std::int64_t displacement_of(const ZydisDecodedOperandMem& memory, std::uint64_t end) {
  return memory.disp.value + (memory.base == ZYDIS_REGISTER_RIP ? static_cast<std::int64_t>(end) : 0);
}

bool same_operand(const ZydisDecodedOperandMem& a, std::int64_t a_at, const ZydisDecodedOperandMem& b,
                  std::int64_t b_at) {
  return a.segment == b.segment && a.base == b.base && a.index == b.index &&
         (a.index == ZYDIS_REGISTER_NONE || a.scale == b.scale) && a_at == b_at;
}

}  // namespace

bool is_stored_back(std::span<const std::uint8_t> code) {
  Decoded decoded;
  if (!decode_full(code, decoded) || memory_operand(decoded) == nullptr) {
    return false;
  }
  const ZydisDecodedOperandMem loaded = memory_operand(decoded)->mem;
  if (stores(kind_of(*memory_operand(decoded)))) {
    return true;
  }
  std::uint64_t end = decoded.instruction.length;
  const std::int64_t loaded_at = displacement_of(loaded, end);
  for (int i = 0; i < most_instructions && !changes(decoded, loaded); ++i) {
    const auto flow = decode(code.subspan(end), end);
    if (!flow || (flow->flow != Flow::next && flow->flow != Flow::branch) || !decode_full(code.subspan(end), decoded)) {
      return false;
    }
    end += decoded.instruction.length;
    const ZydisDecodedOperand* const memory = memory_operand(decoded);
    if (memory != nullptr && stores(kind_of(*memory)) &&
        same_operand(loaded, loaded_at, memory->mem, displacement_of(memory->mem, end))) {
      return true;
    }
  }
  return false;
}

}  // namespace crosstalk::symbolizer
