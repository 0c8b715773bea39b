// SPDX-License-Identifier: Apache-2.0
// Decoding with Zydis, and conversion of its types to ours. Internal to the instruction decoders.
#pragma once

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/registers.h"
#include "base/x86.h"

namespace crosstalk::symbolizer {

using x86::is_memory;
using x86::is_register;
using x86::kind_of;
using x86::reads_register;
using x86::touches_no_memory;
using x86::writes_register;

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

/// The general register, or rip, of 64 bits; nullopt: another.
inline std::optional<Register> integer_register(ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_RIP) {
    return Register::rip;
  }
  const bool general = reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15;
  return general ? std::optional(static_cast<Register>(x86::dwarf_number(reg - ZYDIS_REGISTER_RAX))) : std::nullopt;
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
    return is_memory(operand) && operand.mem.type == ZYDIS_MEMOP_TYPE_MEM;
  });
  return found == operands.end() ? nullptr : &*found;
}

/// The largest register that contains `reg`; `reg` itself if none does.
inline ZydisRegister whole(ZydisRegister reg) {
  const ZydisRegister large = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  return large != ZYDIS_REGISTER_NONE ? large : reg;
}

/// True if the instruction writes a register, which no larger one contains, or a part of it.
inline bool writes(const Decoded& decoded, ZydisRegister reg) {
  const auto operands = decoded.used();
  return std::any_of(operands.begin(), operands.end(), [reg](const ZydisDecodedOperand& operand) {
    return writes_register(operand) && whole(operand.reg.value) == reg;
  });
}

/// True if two operands are the same register.
inline bool same_register(const Decoded& decoded, std::size_t a = 0, std::size_t b = 1) {
  const auto operands = decoded.used();
  return operands.size() > std::max(a, b) && is_register(operands[a]) && is_register(operands[b]) &&
         operands[a].reg.value == operands[b].reg.value;
}

inline std::string_view mnemonic_of(const ZydisDecodedInstruction& instruction) {
  return ZydisMnemonicGetString(instruction.mnemonic);
}

/// True for loads and stores that go round the caches.
inline bool is_streaming(const ZydisDecodedInstruction& instruction) {
  return mnemonic_of(instruction).starts_with("movnt") || mnemonic_of(instruction).starts_with("vmovnt");
}

inline bool is_compare_exchange(const ZydisDecodedInstruction& instruction) {
  return instruction.mnemonic == ZYDIS_MNEMONIC_CMPXCHG || instruction.mnemonic == ZYDIS_MNEMONIC_CMPXCHG8B ||
         instruction.mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B;
}

}  // namespace crosstalk::symbolizer
