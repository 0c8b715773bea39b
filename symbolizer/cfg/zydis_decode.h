// SPDX-License-Identifier: Apache-2.0
// Decoding with Zydis, and conversion of its types to ours. Internal to the instruction decoders.
#pragma once

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.h"

namespace crosstalk::symbolizer {

inline const ZydisDecoder& decoder() {
  static const ZydisDecoder instance = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return made;
  }();
  return instance;
}

struct Decoded {
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  [[nodiscard]] std::span<const ZydisDecodedOperand> used() const {
    return {operands.data(), instruction.operand_count};
  }
};

inline bool decode_full(std::span<const std::uint8_t> code, Decoded& decoded) {
  return !code.empty() && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code.data(), code.size(),
                                                              &decoded.instruction, decoded.operands.data()));
}

/// Zydis numbers registers as instructions encode them; we number them as DWARF does.
inline std::optional<Register> integer_register(ZydisRegister reg) {
  static constexpr std::array<Register, 16> by_encoding = {Register::rax, Register::rcx, Register::rdx, Register::rbx,
                                                           Register::rsp, Register::rbp, Register::rsi, Register::rdi,
                                                           Register::r8,  Register::r9,  Register::r10, Register::r11,
                                                           Register::r12, Register::r13, Register::r14, Register::r15};
  if (reg == ZYDIS_REGISTER_RIP) {
    return Register::rip;
  }
  if (ZydisRegisterGetClass(reg) != ZYDIS_REGCLASS_GPR64) {
    return std::nullopt;
  }
  const auto id = static_cast<unsigned char>(ZydisRegisterGetId(reg));  // -1, for none, becomes 255
  return id < by_encoding.size() ? std::optional(by_encoding[id]) : std::nullopt;
}

inline AccessKind kind_of(const ZydisDecodedOperand& operand) {
  const bool read = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  const bool write = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  return static_cast<AccessKind>((read ? 1U : 0U) | (write ? 2U : 0U));
}

inline bool touches_no_memory(const ZydisDecodedInstruction& instruction) {
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLFLUSHOPT:
    case ZYDIS_CATEGORY_CLWB:
    case ZYDIS_CATEGORY_CLDEMOTE:
      return true;
    default:
      break;
  }
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_INVLPG:
    case ZYDIS_MNEMONIC_MONITOR:
    case ZYDIS_MNEMONIC_MONITORX:
    case ZYDIS_MNEMONIC_UMONITOR:
      return true;
    default:
      return false;
  }
}

/// True for loads of elements at addresses in a vector register, of AVX2 and of AVX-512.
inline bool is_gather(const ZydisDecodedInstruction& instruction) {
  return instruction.meta.category == ZYDIS_CATEGORY_GATHER || instruction.meta.category == ZYDIS_CATEGORY_AVX2GATHER;
}

/// The memory operand that an instruction accesses; null if it accesses none.
inline const ZydisDecodedOperand* memory_operand(const Decoded& decoded) {
  if (touches_no_memory(decoded.instruction)) {
    return nullptr;
  }
  const auto operands = decoded.used();
  const auto found = std::find_if(operands.begin(), operands.end(), [](const auto& operand) {
    return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type == ZYDIS_MEMOP_TYPE_MEM;
  });
  return found == operands.end() ? nullptr : &*found;
}

/// The largest register that contains `reg`; `reg` itself if none does.
inline ZydisRegister whole(ZydisRegister reg) {
  const ZydisRegister large = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  return large != ZYDIS_REGISTER_NONE ? large : reg;
}

}  // namespace crosstalk::symbolizer
