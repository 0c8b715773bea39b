// SPDX-License-Identifier: Apache-2.0
// Facts of x86-64 instructions that Zydis has decoded, for the symbolizer and for the access finder in a target: pure,
// signal-safe, without allocation.
#pragma once

#include <Zydis/DecoderTypes.h>
#include <Zydis/Register.h>

#include <cstdint>

#include "base/registers.h"

namespace crosstalk::x86 {

/// Instructions encode rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, ... in this order; `Register` is in DWARF's.
[[nodiscard]] constexpr std::uint8_t dwarf_number(unsigned encoding) {
  constexpr std::uint8_t order[8] = {0, 2, 1, 3, 7, 6, 4, 5};
  return encoding < 8 ? order[encoding] : static_cast<std::uint8_t>(encoding);
}

[[nodiscard]] inline bool is_vector(ZydisRegister reg) {
  const ZydisRegisterClass kind = ZydisRegisterGetClass(reg);
  return kind >= ZYDIS_REGCLASS_XMM && kind <= ZYDIS_REGCLASS_ZMM;
}

[[nodiscard]] inline bool is_register(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER;
}
[[nodiscard]] inline bool is_memory(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY;
}

/// Returns how an instruction uses an operand, perhaps on a condition.
[[nodiscard]] inline AccessKind kind_of(const ZydisDecodedOperand& operand) {
  const bool read = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  const bool write = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  return static_cast<AccessKind>((read ? 1U : 0U) | (write ? 2U : 0U));
}
[[nodiscard]] inline bool reads_register(const ZydisDecodedOperand& operand) {
  return is_register(operand) && loads(kind_of(operand));
}
[[nodiscard]] inline bool writes_register(const ZydisDecodedOperand& operand) {
  return is_register(operand) && stores(kind_of(operand));
}

/// The bytes of a memory operand; 0: more than 64, or not fixed.
[[nodiscard]] inline std::uint8_t width_of(const ZydisDecodedOperand& operand) {
  const unsigned bytes = operand.size / 8U;
  return bytes > 64 ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes);
}

/// True if the instruction computes an address, or is a hint: its memory operand is not accessed.
[[nodiscard]] inline bool touches_no_memory(const ZydisDecodedInstruction& instruction) {
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

/// True for rep, repe and repne.
[[nodiscard]] inline bool is_repeated(const ZydisDecodedInstruction& instruction) {
  return (instruction.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
}

/// True if a mask register of AVX-512 chooses elements.
[[nodiscard]] inline bool is_masked(const ZydisDecodedInstruction& instruction) {
  return instruction.avx.mask.reg != ZYDIS_REGISTER_NONE && instruction.avx.mask.reg != ZYDIS_REGISTER_K0;
}

/// True if it writes flags that conditions test, or leaves them undefined.
[[nodiscard]] inline bool writes_status_flags(const ZydisDecodedInstruction& instruction) {
  constexpr std::uint32_t status =
      ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;
  const ZydisAccessedFlags* const flags = instruction.cpu_flags;
  return flags != nullptr && ((flags->modified | flags->set_0 | flags->set_1 | flags->undefined) & status) != 0;
}

}  // namespace crosstalk::x86
