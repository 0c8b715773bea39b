// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/instructions.h"

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

Flow flow_of(const ZydisDecodedInstruction& instruction) {
  const bool relative = instruction.raw.imm[0].is_relative != 0;
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return relative ? Flow::branch : Flow::next;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return relative ? Flow::jump : Flow::indirect_jump;
    case ZYDIS_CATEGORY_CALL:
      return Flow::call;
    case ZYDIS_CATEGORY_RET:
      return Flow::stop;
    default:
      break;
  }
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSRET:
      return Flow::stop;
    default:
      return Flow::next;
  }
}

/// Prefers explicit operands to implied ones, and stores to loads.
const ZydisDecodedOperand* preferred_memory_operand(const Decoded& decoded) {
  const ZydisDecodedOperand* best = nullptr;
  int best_score = -1;
  for (const ZydisDecodedOperand& operand : decoded.used()) {
    if (!is_memory(operand) || kind_of(operand) == AccessKind::none ||
        (operand.mem.type != ZYDIS_MEMOP_TYPE_MEM && operand.mem.type != ZYDIS_MEMOP_TYPE_VSIB)) {
      continue;
    }
    const int score =
        (operand.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT ? 2 : 0) + (stores(kind_of(operand)) ? 1 : 0);
    if (score > best_score) {
      best = &operand;
      best_score = score;
    }
  }
  return best;
}

/// True when some other operand of the instruction writes `reg` (or a part of it).
bool overwrites(const Decoded& decoded, ZydisRegister reg) {
  return reg != ZYDIS_REGISTER_NONE && reg != ZYDIS_REGISTER_RIP && writes(decoded, whole(reg));
}

bool pushes(const ZydisDecodedInstruction& instruction) {
  return instruction.meta.category == ZYDIS_CATEGORY_PUSH || instruction.meta.category == ZYDIS_CATEGORY_CALL;
}

std::uint8_t width_of(const Decoded& decoded, const ZydisDecodedOperand& operand) {
  return x86::is_repeated(decoded.instruction) ? std::uint8_t{0} : x86::width_of(operand);
}

}  // namespace

std::optional<Instruction> decode(std::span<const std::uint8_t> code, std::uint64_t address) {
  ZydisDecodedInstruction decoded;
  if (code.empty() ||
      !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder(), nullptr, code.data(), code.size(), &decoded))) {
    return std::nullopt;
  }
  Instruction instruction{address, 0, decoded.length, flow_of(decoded), false};
  if (decoded.raw.imm[0].is_relative != 0) {
    instruction.target = instruction.end() + static_cast<std::uint64_t>(decoded.raw.imm[0].value.s);
  }
  instruction.padding = decoded.meta.category == ZYDIS_CATEGORY_NOP ||
                        decoded.meta.category == ZYDIS_CATEGORY_WIDENOP || decoded.mnemonic == ZYDIS_MNEMONIC_INT3;
  return instruction;
}

std::optional<MemoryAccess> memory_access(std::span<const std::uint8_t> code, std::uint64_t address) {
  Decoded decoded;
  if (!decode_full(code, decoded) || touches_no_memory(decoded.instruction)) {
    return std::nullopt;
  }
  const ZydisDecodedOperand* operand = preferred_memory_operand(decoded);
  if (operand == nullptr) {
    return std::nullopt;
  }
  MemoryAccess access;
  access.instruction = address;
  access.instruction_bytes = decoded.instruction.length;
  access.kind = kind_of(*operand);
  access.width = width_of(decoded, *operand);
  const auto& memory = operand->mem;
  access.base = integer_register(memory.base);
  access.index = integer_register(memory.index);
  access.scale = memory.index == ZYDIS_REGISTER_NONE ? std::uint8_t{1} : memory.scale;
  access.displacement = memory.disp.has_displacement != 0 ? memory.disp.value : 0;
  access.segment_fs = memory.segment == ZYDIS_REGISTER_FS;
  access.overwrites_base = overwrites(decoded, memory.base) || overwrites(decoded, memory.index);
  if (operand->visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT && pushes(decoded.instruction) &&
      memory.base == ZYDIS_REGISTER_RSP) {
    access.displacement -= operand->size / 8;
  }
  const bool computable = (memory.base == ZYDIS_REGISTER_NONE || access.base) &&
                          (memory.index == ZYDIS_REGISTER_NONE || access.index) && memory.segment != ZYDIS_REGISTER_GS;
  if (!computable) {
    access.base.reset();
    access.index.reset();
    access.width = 0;
    access.overwrites_base = true;
  }
  return access;
}

Operands table_operands(std::span<const std::uint8_t> code, std::uint64_t address) {
  Operands result;
  Decoded decoded;
  if (!decode_full(code, decoded)) {
    return result;
  }
  const auto mnemonic = decoded.instruction.mnemonic;
  for (const ZydisDecodedOperand& operand : decoded.used()) {
    if (operand.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT) {
      continue;
    }
    if (mnemonic == ZYDIS_MNEMONIC_CMP && operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.value.s >= 0) {
      result.compare_bound = operand.imm.value.u;
    }
    if (!is_memory(operand)) {
      continue;
    }
    const auto& memory = operand.mem;
    if (mnemonic == ZYDIS_MNEMONIC_LEA && memory.base == ZYDIS_REGISTER_RIP) {
      result.lea_address = address + decoded.instruction.length + static_cast<std::uint64_t>(memory.disp.value);
    }
    if (mnemonic == ZYDIS_MNEMONIC_MOVSXD && memory.base != ZYDIS_REGISTER_NONE && memory.scale == 4) {
      result.wide_load_scale = memory.scale;
    }
    if ((mnemonic == ZYDIS_MNEMONIC_JMP || mnemonic == ZYDIS_MNEMONIC_MOV) && memory.base == ZYDIS_REGISTER_NONE &&
        memory.index != ZYDIS_REGISTER_NONE && memory.scale == 8 && memory.disp.has_displacement != 0) {
      result.table_address = static_cast<std::uint64_t>(memory.disp.value);
    }
  }
  return result;
}

}  // namespace crosstalk::symbolizer
