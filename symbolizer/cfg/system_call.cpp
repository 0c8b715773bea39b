// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/system_call.h"

#include <algorithm>
#include <array>
#include <utility>

#include "symbolizer/cfg/instructions.h"
#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

/// From <asm/unistd_64.h>, by cmake/system_call_names.cmake.
constexpr std::pair<std::uint32_t, const char*> call_names[] = {
#include "system_call_names.inc"
};

/// The value that an instruction writes to eax; nullopt if it is no plain constant.
std::optional<std::uint32_t> left_in_eax(const Decoded& decoded) {
  const ZydisDecodedOperand& to = decoded.operands[0];
  const ZydisDecodedOperand& from = decoded.operands[1];
  if (!is_register(to) || to.size < 32) {
    return std::nullopt;
  }
  const ZydisMnemonic what = decoded.instruction.mnemonic;
  if (what == ZYDIS_MNEMONIC_MOV && from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    return static_cast<std::uint32_t>(from.imm.value.u);
  }
  const bool cleared = (what == ZYDIS_MNEMONIC_XOR || what == ZYDIS_MNEMONIC_SUB) && same_register(decoded);
  return cleared ? std::optional<std::uint32_t>(0) : std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> system_call_number(std::span<const std::uint8_t> code) {
  std::optional<std::uint32_t> number;
  Decoded decoded;
  while (decode_full(code, decoded)) {
    const std::size_t length = decoded.instruction.length;
    if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_SYSCALL && length == code.size()) {
      return number;
    }
    const auto flow = decode(code, 0);
    if (!flow || flow->flow == Flow::call || flow->flow == Flow::stop || flow->flow == Flow::jump ||
        flow->flow == Flow::indirect_jump || decoded.instruction.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
      number.reset();  // a result, or what comes here from elsewhere
    } else if (writes(decoded, ZYDIS_REGISTER_RAX)) {
      number = left_in_eax(decoded);
    }
    code = code.subspan(length);
  }
  return std::nullopt;
}

std::string system_call_name(std::uint32_t number) {
  const auto* const found = std::find_if(std::begin(call_names), std::end(call_names),
                                         [number](const auto& known) { return known.first == number; });
  return found == std::end(call_names) ? std::string() : found->second;
}

}  // namespace crosstalk::symbolizer
