// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/register_effects.h"

#include <limits>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

constexpr auto stack_pointer = static_cast<std::size_t>(Register::rsp);
constexpr auto frame_pointer = static_cast<std::size_t>(Register::rbp);
constexpr std::uint64_t slot_bytes = 8;

using MaybeLinear = std::optional<Linear>;

/// The general register of which `reg` is the whole or the lower half.
std::optional<std::size_t> whole_or_half(ZydisRegister reg) {
  const ZydisRegisterClass kind = ZydisRegisterGetClass(reg);
  if (kind != ZYDIS_REGCLASS_GPR64 && kind != ZYDIS_REGCLASS_GPR32) {
    return std::nullopt;
  }
  const auto found = integer_register(whole(reg));
  return found && *found != Register::rip ? std::optional(static_cast<std::size_t>(*found)) : std::nullopt;
}

MaybeLinear narrowed(MaybeLinear value, unsigned bits) {
  if (value && bits == 32) {
    value->narrow = true;
  }
  return bits == 64 || bits == 32 ? value : std::nullopt;
}

MaybeLinear value_of(ZydisRegister reg, const RegisterForms& forms) {
  const auto index = whole_or_half(reg);
  return index ? narrowed(forms.at(*index), ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg)) : std::nullopt;
}

MaybeLinear sum(const MaybeLinear& a, const MaybeLinear& b, std::int64_t scale = 1) {
  return a && b ? add(*a, *b, scale) : std::nullopt;
}

MaybeLinear value_of(const ZydisDecodedOperand& operand, const RegisterForms& forms) {
  if (is_register(operand)) {
    return value_of(operand.reg.value, forms);
  }
  if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    return Linear::number(operand.imm.value.u);
  }
  return std::nullopt;
}

MaybeLinear address_of(const ZydisDecodedOperand& operand, const RegisterForms& forms) {
  const auto& memory = operand.mem;
  MaybeLinear address = Linear::number(static_cast<std::uint64_t>(memory.disp.value));
  if (memory.base != ZYDIS_REGISTER_NONE) {
    address = sum(address, value_of(memory.base, forms));
  }
  if (memory.index != ZYDIS_REGISTER_NONE) {
    address = sum(address, value_of(memory.index, forms), memory.scale);
  }
  return address;
}

MaybeLinear product(const MaybeLinear& value, std::int64_t scale) { return sum(Linear::number(0), value, scale); }

MaybeLinear shifted(const Decoded& decoded, const RegisterForms& forms) {
  const ZydisDecodedOperand& by = decoded.operands[1];
  constexpr std::uint64_t largest = 16;  // array elements are no larger
  const bool fixed = by.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && by.imm.value.u <= largest;
  return fixed ? product(value_of(decoded.operands[0], forms), std::int64_t{1} << by.imm.value.u) : std::nullopt;
}

MaybeLinear multiplied(const Decoded& decoded, const RegisterForms& forms) {
  const bool fixed =
      decoded.instruction.operand_count_visible == 3 && decoded.operands[2].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  return fixed ? product(value_of(decoded.operands[1], forms), decoded.operands[2].imm.value.s) : std::nullopt;
}

/// The linear form that an instruction leaves in its first operand.
MaybeLinear result_of(const Decoded& decoded, const RegisterForms& forms) {
  const ZydisDecodedOperand& to = decoded.operands[0];
  const ZydisDecodedOperand& from = decoded.operands[1];
  switch (decoded.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
      return value_of(from, forms);
    case ZYDIS_MNEMONIC_MOVSXD:  // the lower half is the source's
      return narrowed(value_of(from, forms), 32);
    case ZYDIS_MNEMONIC_LEA:
      return address_of(from, forms);
    case ZYDIS_MNEMONIC_ADD:
      return sum(value_of(to, forms), value_of(from, forms));
    case ZYDIS_MNEMONIC_SUB:
      return same_register(decoded) ? Linear::number(0) : sum(value_of(to, forms), value_of(from, forms), -1);
    case ZYDIS_MNEMONIC_XOR:
      return same_register(decoded) ? MaybeLinear(Linear::number(0)) : std::nullopt;
    case ZYDIS_MNEMONIC_INC:
      return sum(value_of(to, forms), Linear::number(1));
    case ZYDIS_MNEMONIC_DEC:
      return sum(value_of(to, forms), Linear::number(1), -1);
    case ZYDIS_MNEMONIC_NEG:
      return product(value_of(to, forms), -1);
    case ZYDIS_MNEMONIC_SHL:
      return shifted(decoded, forms);
    case ZYDIS_MNEMONIC_IMUL:
      return multiplied(decoded, forms);
    default:
      return std::nullopt;
  }
}

void forget_written(const Decoded& decoded, RegisterForms& forms) {
  for (const ZydisDecodedOperand& operand : decoded.used()) {
    const auto reg = writes_register(operand) ? integer_register(whole(operand.reg.value)) : std::nullopt;
    if (reg && *reg != Register::rip) {
      forms.at(static_cast<std::size_t>(*reg)).reset();
    }
  }
}

void forget_callers_registers(RegisterForms& forms) {
  for (const Register reg : {Register::rax, Register::rcx, Register::rdx, Register::rsi, Register::rdi, Register::r8,
                             Register::r9, Register::r10, Register::r11}) {
    forms.at(static_cast<std::size_t>(reg)).reset();
  }
}

/// Applies push, pop and leave to the stack pointer. False for any other instruction.
bool move_stack(const Decoded& decoded, const RegisterForms& before, RegisterForms& forms) {
  const MaybeLinear slot = Linear::number(slot_bytes);
  const ZydisInstructionCategory category = decoded.instruction.meta.category;
  const bool wide = decoded.instruction.operand_width == 64;
  if (category == ZYDIS_CATEGORY_PUSH) {
    forms[stack_pointer] = wide ? sum(before[stack_pointer], slot, -1) : std::nullopt;
    return true;
  }
  if (category == ZYDIS_CATEGORY_POP) {
    const bool to_itself =
        is_register(decoded.operands[0]) && whole_or_half(decoded.operands[0].reg.value) == stack_pointer;
    forms[stack_pointer] = wide && !to_itself ? sum(before[stack_pointer], slot) : std::nullopt;
    return true;
  }
  if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_LEAVE) {
    forms[stack_pointer] = sum(before[frame_pointer], slot);
    return true;
  }
  return false;
}

}  // namespace

std::optional<Linear> add(const Linear& a, const Linear& b, std::int64_t scale) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t highest = std::numeric_limits<std::int32_t>::max();
  if (scale < lowest || scale > highest) {
    return std::nullopt;
  }
  Linear result{{}, a.constant + b.constant * static_cast<std::uint64_t>(scale), a.narrow || b.narrow};
  for (std::size_t i = 0; i < general_registers; ++i) {
    const std::int64_t factor = a.factor.at(i) + b.factor.at(i) * scale;  // within 64 bits: both are of 32
    if (factor < lowest || factor > highest) {
      return std::nullopt;
    }
    result.factor.at(i) = static_cast<std::int32_t>(factor);
  }
  return result;
}

RegisterForms unchanged_registers() {
  RegisterForms forms;
  for (std::size_t i = 0; i < general_registers; ++i) {
    forms.at(i) = Linear::of(i);
  }
  return forms;
}

std::optional<Linear> address_form(const MemoryAccess& access, std::uint64_t behind, const RegisterForms& forms) {
  const auto value = [&](std::optional<Register> reg) -> MaybeLinear {
    if (!reg) {
      return Linear::number(0);
    }
    return *reg == Register::rip ? Linear::number(behind) : forms.at(static_cast<std::size_t>(*reg));
  };
  const MaybeLinear place = sum(value(access.base), value(access.index), access.scale);
  return sum(place, Linear::number(static_cast<std::uint64_t>(access.displacement)));
}

void execute(std::span<const std::uint8_t> code, RegisterForms& forms) {
  Decoded decoded;
  if (!decode_full(code, decoded)) {
    forms.fill(std::nullopt);
    return;
  }
  if (decoded.instruction.meta.category == ZYDIS_CATEGORY_CALL) {
    forget_callers_registers(forms);
    return;
  }
  const RegisterForms before = forms;
  forget_written(decoded, forms);
  if (move_stack(decoded, before, forms)) {
    return;
  }
  if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
    forms[0].reset();  // the result
  }
  if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_CDQE) {
    forms[0] = narrowed(before[0], 32);
    return;
  }
  const ZydisDecodedOperand& to = decoded.operands[0];
  if (decoded.instruction.operand_count_visible == 0 || !writes_register(to)) {
    return;
  }
  if (const auto index = whole_or_half(to.reg.value)) {
    forms.at(*index) = narrowed(result_of(decoded, before), to.size);
  }
}

std::optional<Linear> substitute(const Linear& form, const RegisterForms& in) {
  MaybeLinear result = Linear{{}, form.constant, form.narrow};
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (form.factor.at(i) != 0) {
      result = sum(result, in.at(i), form.factor.at(i));
    }
  }
  return result;
}

FlagEffect flag_effect(std::span<const std::uint8_t> code, const RegisterForms& before) {
  Decoded decoded;
  if (!decode_full(code, decoded)) {
    return {true, false, std::nullopt};
  }
  if (!x86::writes_status_flags(decoded.instruction)) {
    return {};
  }
  const ZydisDecodedOperand& to = decoded.operands[0];
  switch (decoded.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_SUB:
      return {true, true, narrowed(sum(value_of(to, before), value_of(decoded.operands[1], before), -1), to.size)};
    case ZYDIS_MNEMONIC_TEST:
      return {true, false, same_register(decoded) ? narrowed(value_of(to, before), to.size) : std::nullopt};
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
      return {true, false, narrowed(result_of(decoded, before), to.size)};
    default:
      return {true, false, std::nullopt};
  }
}

void meet(RegisterForms& forms, const RegisterForms& other) {
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (forms.at(i) != other.at(i)) {
      forms.at(i).reset();
    }
  }
}

}  // namespace crosstalk::symbolizer
