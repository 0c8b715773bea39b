// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/disassembly.h"

#include <array>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

const ZydisFormatter& formatter() {
  static const ZydisFormatter instance = [] {
    ZydisFormatter made;
    ZydisFormatterInit(&made, ZYDIS_FORMATTER_STYLE_ATT);
    ZydisFormatterSetProperty(&made, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    ZydisFormatterSetProperty(&made, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&made, ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&made, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
    return made;
  }();
  return instance;
}

}  // namespace

Disassembled disassemble(std::span<const std::uint8_t> code, std::uint64_t address) {
  Disassembled result;
  Decoded decoded;
  std::array<char, 256> text{};
  if (!decode_full(code, decoded) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter(), &decoded.instruction, decoded.operands.data(),
                                                    decoded.instruction.operand_count_visible, text.data(), text.size(),
                                                    address, nullptr))) {
    return result;
  }
  result.text = text.data();
  const std::uint64_t end = address + decoded.instruction.length;
  if (decoded.instruction.raw.imm[0].is_relative != 0) {
    result.code_target = end + static_cast<std::uint64_t>(decoded.instruction.raw.imm[0].value.s);
  }
  for (const ZydisDecodedOperand& operand : decoded.used()) {
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base == ZYDIS_REGISTER_RIP) {
      result.data_target = end + static_cast<std::uint64_t>(operand.mem.disp.value);
    }
  }
  return result;
}

}  // namespace crosstalk::symbolizer
