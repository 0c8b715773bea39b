// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/integer_kinds.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

bool begins_with_one_of(std::string_view name, std::initializer_list<std::string_view> begins) {
  return std::any_of(begins.begin(), begins.end(), [&](std::string_view begin) { return name.starts_with(begin); });
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The element of vector instructions by the end of their name (paddd: 4 bytes); nullopt: it has none.
std::optional<IntegerElement> element_of(std::string_view name) {
  if (name.ends_with("dq")) {
    return IntegerElement::int64;
  }
  switch (name.back()) {
    case 'b':
      return IntegerElement::int8;
    case 'w':
      return IntegerElement::int16;
    case 'd':
      return IntegerElement::int32;
    case 'q':
      return IntegerElement::int64;
    default:
      return std::nullopt;
  }
}

double bytes_of(IntegerElement element) { return static_cast<double>(1U << static_cast<unsigned>(element)); }

/// `name` without its v and p: "addd" of vpaddd.
InstructionIntegers vector_of(std::string_view name, const Decoded& decoded) {
  InstructionIntegers result;
  const bool logic = begins_with_one_of(name, {"and", "or", "xor", "ternlog"});
  const bool multiplies = begins_with_one_of(name, {"mul", "madd", "dpb", "dpw"});
  const bool computes = logic || multiplies ||
                        begins_with_one_of(name, {"add", "sub", "hadd", "hsub", "min", "max", "avg", "abs", "sll",
                                                  "srl", "sra", "rol", "ror", "sign", "sadb"});
  const bool cleared = begins_with_one_of(name, {"xor", "sub"}) && same_register(decoded, 1, 2);
  const bool cleared_in_place = decoded.instruction.operand_count_visible == 2 &&
                                begins_with_one_of(name, {"xor", "sub"}) && same_register(decoded);
  if (!computes || cleared || cleared_in_place) {
    return result;
  }
  const unsigned bits = decoded.operands[0].size;
  result.element = element_of(name).value_or(IntegerElement::int64);
  result.width = width_of_vector(bits);
  result.operation = multiplies ? IntegerOperation::mul : IntegerOperation::add;
  result.operations = bits / 8.0 / bytes_of(result.element);
  return result;
}

InstructionIntegers scalar_of(std::string_view name, const Decoded& decoded) {
  InstructionIntegers result;
  const auto operands = decoded.used();
  const bool multiplies = is_one_of(name, {"imul", "mul", "mulx"});
  const bool computes = multiplies || is_one_of(name, {"add",  "sub",  "adc",  "sbb",  "and",  "or",  "xor", "not",
                                                       "neg",  "andn", "shl",  "shr",  "sar",  "rol", "ror", "shld",
                                                       "shrd", "shlx", "shrx", "sarx", "rorx", "inc", "dec"});
  if (!computes || operands.empty()) {
    return result;
  }
  const bool in_register = is_register(operands[0]);
  const bool by_constant = decoded.instruction.operand_count_visible == 1 ||
                           (operands.size() > 1 && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE);
  const bool steers = in_register && by_constant && is_one_of(name, {"add", "sub", "inc", "dec"});
  const bool clears = is_one_of(name, {"xor", "sub"}) && same_register(decoded);
  if (steers || clears) {
    return result;
  }
  const unsigned bits = std::max<unsigned>(operands[0].size, 8);
  result.element = bits >= 64   ? IntegerElement::int64
                   : bits >= 32 ? IntegerElement::int32
                   : bits >= 16 ? IntegerElement::int16
                                : IntegerElement::int8;
  result.operation = multiplies ? IntegerOperation::mul : IntegerOperation::add;
  result.operations = 1;
  return result;
}

bool is_vector(const Decoded& decoded) {
  const auto operands = decoded.used();
  return std::any_of(operands.begin(), operands.end(), [](const ZydisDecodedOperand& operand) {
    return is_register(operand) && x86::is_vector(operand.reg.value);
  });
}

}  // namespace

std::optional<InstructionIntegers> integers_of(std::span<const std::uint8_t> code) {
  Decoded decoded;
  if (!decode_full(code, decoded)) {
    return std::nullopt;
  }
  std::string_view name = mnemonic_of(decoded.instruction);
  if (!is_vector(decoded)) {
    return scalar_of(name, decoded);
  }
  name.remove_prefix(name.front() == 'v' ? 1 : 0);
  if (name.front() != 'p') {
    return InstructionIntegers{};  // floating point, or a move
  }
  name.remove_prefix(1);
  const InstructionIntegers result = vector_of(name, decoded);
  const bool varies = result.operations > 0 && x86::is_masked(decoded.instruction);
  return varies ? std::nullopt : std::optional(result);
}

double IntegersByKind::total() const { return std::accumulate(of.begin(), of.end(), 0.0); }

}  // namespace crosstalk::symbolizer
