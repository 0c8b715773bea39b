// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/waiting.h"

#include <algorithm>
#include <set>
#include <vector>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

const ZydisDecodedOperand* memory_operand(const Decoded& decoded) {
  if (touches_no_memory(decoded.instruction)) {
    return nullptr;
  }
  const auto operands = decoded.used();
  const auto found = std::find_if(operands.begin(), operands.end(), [](const auto& operand) {
    return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type == ZYDIS_MEMOP_TYPE_MEM;
  });
  return found == operands.end() ? nullptr : &*found;
}

Update update_of(const Decoded& decoded) {
  const ZydisDecodedOperand* memory = memory_operand(decoded);
  if (memory == nullptr || kind_of(*memory) != AccessKind::load_store) {
    return Update::none;
  }
  if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_XCHG) {
    return Update::exchange;
  }
  if ((decoded.instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) == 0) {
    return Update::plain;
  }
  switch (decoded.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_CMPXCHG:
    case ZYDIS_MNEMONIC_CMPXCHG8B:
    case ZYDIS_MNEMONIC_CMPXCHG16B:
      return Update::compare_exchange;
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_XADD:
      return Update::add;
    default:
      return Update::bits;
  }
}

/// The largest register that holds `reg`; itself for those that are part of none.
ZydisRegister whole(ZydisRegister reg) {
  const ZydisRegister large = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  return large != ZYDIS_REGISTER_NONE ? large : reg;
}

/// Registers that a way writes, as the largest that hold them.
std::set<ZydisRegister> written_by(std::span<const Decoded> way) {
  std::set<ZydisRegister> written;
  for (const Decoded& decoded : way) {
    for (const ZydisDecodedOperand& operand : decoded.used()) {
      if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
        written.insert(whole(operand.reg.value));
      }
    }
  }
  written.erase(ZYDIS_REGISTER_RIP);
  return written;
}

bool is_left_alone(ZydisRegister reg, const std::set<ZydisRegister>& written) {
  return reg == ZYDIS_REGISTER_NONE || !written.contains(whole(reg));
}

}  // namespace

Update update_of(std::span<const std::uint8_t> code) {
  Decoded decoded;
  return decode_full(code, decoded) ? update_of(decoded) : Update::none;
}

Waiting waits(std::span<const std::span<const std::uint8_t>> way) {
  std::vector<Decoded> decoded(way.size());
  for (std::size_t i = 0; i < way.size(); ++i) {
    if (!decode_full(way[i], decoded[i]) || decoded[i].instruction.meta.category == ZYDIS_CATEGORY_CALL ||
        decoded[i].instruction.meta.category == ZYDIS_CATEGORY_SYSCALL) {
      return Waiting::no;
    }
  }
  const std::set<ZydisRegister> written = written_by(decoded);
  bool looks = false;
  bool pauses = false;
  for (const Decoded& instruction : decoded) {
    pauses = pauses || instruction.instruction.mnemonic == ZYDIS_MNEMONIC_PAUSE;
    const ZydisDecodedOperand* memory = memory_operand(instruction);
    if (memory == nullptr) {
      continue;
    }
    const Update update = update_of(instruction);
    const bool tries = update == Update::exchange || update == Update::compare_exchange || update == Update::bits;
    if (!is_left_alone(memory->mem.base, written) || !is_left_alone(memory->mem.index, written) ||
        (stores(kind_of(*memory)) && !tries)) {
      return Waiting::no;
    }
    looks = true;
  }
  return !looks ? Waiting::no : pauses ? Waiting::surely : Waiting::perhaps;
}

}  // namespace crosstalk::symbolizer
