// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/instruction.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::reference {
namespace {

using symbolizer::Decoded;

/// True for instructions that the emulator executes in pieces, perhaps not all or not in one row.
bool comes_in_pieces(const ZydisDecodedInstruction& instruction) {
  constexpr auto repeated = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  if ((instruction.attributes & repeated) != 0) {
    return true;
  }
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_MASKMOVQ:
      return true;
    default:
      return false;
  }
}

/// The widest row of pieces: a ymm register. Anything larger is a state (fxsave, xsave).
constexpr unsigned widest = 32;

void take_operand(const ZydisDecodedOperand& operand, InstructionFacts& facts) {
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type != ZYDIS_MEMOP_TYPE_MEM) {
    return;
  }
  const bool read = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  const bool write = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  const unsigned bytes = operand.size / 8U;
  const auto width = static_cast<std::uint8_t>(bytes > widest ? 0 : bytes);
  if (read) {
    facts.load_bytes = width;
  }
  if (write) {
    facts.store_bytes = width;
  }
  facts.read_modify_write = facts.read_modify_write || (read && write);
}

bool is_avx512(const Decoded& decoded) {
  const auto encoding = decoded.instruction.encoding;
  const auto used = decoded.used();
  return encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX || encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
         std::any_of(used.begin(), used.end(), [](const ZydisDecodedOperand& operand) {
           return operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                  ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_MASK;
         });
}

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

unsigned x87_flops(std::string_view name) {
  static constexpr std::array<std::string_view, 19> arithmetic = {
      "fadd",  "faddp", "fiadd", "fsub",  "fsubp", "fsubr",  "fsubrp", "fisub",  "fisubr", "fmul",
      "fmulp", "fimul", "fdiv",  "fdivp", "fdivr", "fdivrp", "fidiv",  "fidivr", "fsqrt"};
  return one_of(name, arithmetic) ? 1 : 0;
}

/// Returns the operations a lane for a name without `v`, type suffix and, for fused ones, operand order.
unsigned operations_per_lane(std::string_view name) {
  static constexpr std::array<std::string_view, 9> single = {"add", "sub", "mul",  "div", "sqrt",
                                                             "min", "max", "hadd", "hsub"};
  static constexpr std::array<std::string_view, 6> fused = {"fmadd",  "fmsub",    "fnmadd",
                                                            "fnmsub", "fmaddsub", "fmsubadd"};
  if (one_of(name, single) || name == "addsub") {
    return 1;
  }
  return name.size() > 3 && one_of(name.substr(0, name.size() - 3), fused) ? 2 : 0;  // "fmadd" + "213"
}

/// Mnemonics are read as text: `v` + operation + `s`calar or `p`acked + `s`ingle or `d`ouble.
unsigned flops_of(const Decoded& decoded) {
  const char* text = ZydisMnemonicGetString(decoded.instruction.mnemonic);
  std::string_view name = text == nullptr ? "" : text;
  if (const unsigned flops = x87_flops(name); flops > 0) {
    return flops;
  }
  if (name.size() < 4) {
    return 0;
  }
  const char packing = name[name.size() - 2];
  const char type = name.back();
  if ((packing != 's' && packing != 'p') || (type != 's' && type != 'd')) {
    return 0;
  }
  name.remove_suffix(2);
  if (name.front() == 'v') {
    name.remove_prefix(1);
  }
  const unsigned element_bits = type == 's' ? 32 : 64;
  const unsigned lanes = packing == 's' ? 1 : decoded.operands[0].size / element_bits;
  return operations_per_lane(name) * lanes;
}

}  // namespace

std::optional<InstructionFacts> instruction_facts(std::span<const std::uint8_t> code) {
  Decoded decoded;
  if (!symbolizer::decode_full(code, decoded)) {
    return std::nullopt;
  }
  InstructionFacts facts;
  for (const ZydisDecodedOperand& operand : decoded.used()) {
    take_operand(operand, facts);
  }
  if (comes_in_pieces(decoded.instruction)) {
    facts.load_bytes = facts.store_bytes = 0;
  }
  facts.flops = static_cast<std::uint8_t>(flops_of(decoded));
  facts.waits = decoded.instruction.mnemonic == ZYDIS_MNEMONIC_PAUSE;
  facts.is_avx512 = is_avx512(decoded);
  return facts;
}

std::string instruction_text(std::span<const std::uint8_t> code) {
  Decoded decoded;
  if (!symbolizer::decode_full(code, decoded)) {
    return {};
  }
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  std::array<char, 128> text{};
  ZydisFormatterFormatInstruction(&formatter, &decoded.instruction, decoded.operands.data(),
                                  decoded.instruction.operand_count_visible, text.data(), text.size(), 0, nullptr);
  return text.data();
}

}  // namespace crosstalk::reference
