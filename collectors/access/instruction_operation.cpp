// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/instruction_operation.h"

#include "base/x86.h"

namespace crosstalk::in_target {

namespace {

/// Returns the operation of an instruction on single bits, or of an atomic exchange.
Operation bit_operation_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_BTS:
      return Operation::bit_set;
    case ZYDIS_MNEMONIC_BTR:
      return Operation::bit_reset;
    case ZYDIS_MNEMONIC_BTC:
      return Operation::bit_complement;
    case ZYDIS_MNEMONIC_XADD:
      return Operation::exchange_add;
    case ZYDIS_MNEMONIC_CMPXCHG:
      return Operation::compare_exchange;
    case ZYDIS_MNEMONIC_CMPXCHG8B:
    case ZYDIS_MNEMONIC_CMPXCHG16B:
      return Operation::compare_exchange_wide;
    case ZYDIS_MNEMONIC_BSF:
      return Operation::scan_forward;
    case ZYDIS_MNEMONIC_BSR:
      return Operation::scan_reverse;
    case ZYDIS_MNEMONIC_TZCNT:
      return Operation::count_trailing;
    case ZYDIS_MNEMONIC_LZCNT:
      return Operation::count_leading;
    case ZYDIS_MNEMONIC_POPCNT:
      return Operation::count_ones;
    case ZYDIS_MNEMONIC_ANDN:
      return Operation::and_not;
    case ZYDIS_MNEMONIC_BLSR:
      return Operation::reset_lowest;
    case ZYDIS_MNEMONIC_BLSI:
      return Operation::isolate_lowest;
    case ZYDIS_MNEMONIC_BLSMSK:
      return Operation::mask_lowest;
    case ZYDIS_MNEMONIC_BZHI:
      return Operation::zero_high_bits;
    case ZYDIS_MNEMONIC_SHLD:
      return Operation::shift_double_left;
    case ZYDIS_MNEMONIC_SHRD:
      return Operation::shift_double_right;
    default:
      return Operation::other;
  }
}

Operation move_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVNTI:
      return Operation::move;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_CBW:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_CDQE:
      return Operation::move_signed;
    case ZYDIS_MNEMONIC_CWD:
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
      return Operation::sign_fill;
    case ZYDIS_MNEMONIC_XCHG:
      return Operation::exchange;
    case ZYDIS_MNEMONIC_LEA:
      return Operation::lea;
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ:
      return Operation::push;
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
      return Operation::pop;
    case ZYDIS_MNEMONIC_BSWAP:
      return Operation::byte_swap;
    default:
      return Operation::other;
  }
}

Operation arithmetic_of(const ZydisDecodedInstruction& instruction) {
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
      return Operation::add;
    case ZYDIS_MNEMONIC_ADC:
      return Operation::add_carry;
    case ZYDIS_MNEMONIC_SUB:
      return Operation::subtract;
    case ZYDIS_MNEMONIC_SBB:
      return Operation::subtract_borrow;
    case ZYDIS_MNEMONIC_CMP:
      return Operation::compare;
    case ZYDIS_MNEMONIC_NEG:
      return Operation::negate;
    case ZYDIS_MNEMONIC_INC:
      return Operation::increment;
    case ZYDIS_MNEMONIC_DEC:
      return Operation::decrement;
    case ZYDIS_MNEMONIC_MUL:
      return Operation::multiply_wide;
    case ZYDIS_MNEMONIC_IMUL:
      return instruction.operand_count_visible == 1 ? Operation::multiply_wide_signed : Operation::multiply;
    case ZYDIS_MNEMONIC_DIV:
      return Operation::divide;
    case ZYDIS_MNEMONIC_IDIV:
      return Operation::divide_signed;
    default:
      return Operation::other;
  }
}

Operation logic_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_AND:
      return Operation::bit_and;
    case ZYDIS_MNEMONIC_OR:
      return Operation::bit_or;
    case ZYDIS_MNEMONIC_XOR:
      return Operation::bit_xor;
    case ZYDIS_MNEMONIC_NOT:
      return Operation::bit_not;
    case ZYDIS_MNEMONIC_TEST:
      return Operation::test;
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHLX:
      return Operation::shift_left;
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SHRX:
      return Operation::shift_right;
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_SARX:
      return Operation::shift_right_signed;
    case ZYDIS_MNEMONIC_ROL:
      return Operation::rotate_left;
    case ZYDIS_MNEMONIC_ROR:
      return Operation::rotate_right;
    case ZYDIS_MNEMONIC_BT:
      return Operation::bit_test;
    default:
      return Operation::other;
  }
}

/// Returns the operation of a jump, or of an instruction that sets a flag.
Operation control_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_JMP:
      return Operation::jump;
    case ZYDIS_MNEMONIC_CALL:
      return Operation::call;
    case ZYDIS_MNEMONIC_RET:
      return Operation::ret;
    case ZYDIS_MNEMONIC_LEAVE:
      return Operation::leave;
    case ZYDIS_MNEMONIC_CLC:
      return Operation::clear_carry;
    case ZYDIS_MNEMONIC_STC:
      return Operation::set_carry;
    case ZYDIS_MNEMONIC_CMC:
      return Operation::complement_carry;
    case ZYDIS_MNEMONIC_CLD:
      return Operation::clear_direction;
    case ZYDIS_MNEMONIC_STD:
      return Operation::set_direction;
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_PAUSE:
      return Operation::nop;
    default:
      return Operation::other;
  }
}

/// Returns the operation of an instruction that its category tells.
Operation category_of(const ZydisDecodedInstruction& instruction) {
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_STRINGOP:
      return Operation::string;
    case ZYDIS_CATEGORY_CMOV:
      return Operation::move_if;
    case ZYDIS_CATEGORY_SETCC:
      return Operation::set_if;
    case ZYDIS_CATEGORY_COND_BR: {
      const bool on_flags = instruction.opcode_map == ZYDIS_OPCODE_MAP_0F ? (instruction.opcode & 0xf0U) == 0x80
                                                                          : (instruction.opcode & 0xf0U) == 0x70;
      return on_flags ? Operation::jump_if : Operation::stop;  // loop and jrcxz are too rare to follow
    }
    default:
      return Operation::other;
  }
}

}  // namespace

Operation operation_of(const ZydisDecodedInstruction& instruction) {
  Operation found = category_of(instruction);
  found = found != Operation::other ? found : move_of(instruction.mnemonic);
  found = found != Operation::other ? found : arithmetic_of(instruction);
  found = found != Operation::other ? found : logic_of(instruction.mnemonic);
  found = found != Operation::other ? found : control_of(instruction.mnemonic);
  if (found != Operation::other) {
    return found;
  }
  return x86::touches_no_memory(instruction) ? Operation::nop : bit_operation_of(instruction.mnemonic);
}

Place place_of_register(ZydisRegister r) {
  if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15) {
    return static_cast<Place>(x86::dwarf_number(r - ZYDIS_REGISTER_RAX));
  }
  if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D) {
    return static_cast<Place>(x86::dwarf_number(r - ZYDIS_REGISTER_EAX));
  }
  if (r >= ZYDIS_REGISTER_AX && r <= ZYDIS_REGISTER_R15W) {
    return static_cast<Place>(x86::dwarf_number(r - ZYDIS_REGISTER_AX));
  }
  if (r >= ZYDIS_REGISTER_AL && r <= ZYDIS_REGISTER_BL) {
    return static_cast<Place>(x86::dwarf_number(r - ZYDIS_REGISTER_AL));
  }
  if (r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH) {
    return static_cast<Place>(static_cast<std::uint8_t>(Place::high_byte) + x86::dwarf_number(r - ZYDIS_REGISTER_AH));
  }
  if (r >= ZYDIS_REGISTER_SPL && r <= ZYDIS_REGISTER_R15B) {
    return static_cast<Place>(x86::dwarf_number(r - ZYDIS_REGISTER_SPL + 4));
  }
  return Place::elsewhere;
}

Place vector_place(ZydisRegister r) {
  const auto at = [r](Place first, ZydisRegister begin) {
    return static_cast<Place>(static_cast<unsigned>(first) + static_cast<unsigned>(r - begin));
  };
  if (r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_XMM31) {
    return at(Place::vector, ZYDIS_REGISTER_XMM0);
  }
  if (r >= ZYDIS_REGISTER_YMM0 && r <= ZYDIS_REGISTER_YMM31) {
    return at(Place::vector, ZYDIS_REGISTER_YMM0);
  }
  if (r >= ZYDIS_REGISTER_ZMM0 && r <= ZYDIS_REGISTER_ZMM31) {
    return at(Place::vector, ZYDIS_REGISTER_ZMM0);
  }
  if (r >= ZYDIS_REGISTER_K0 && r <= ZYDIS_REGISTER_K7) {
    return at(Place::mask, ZYDIS_REGISTER_K0);
  }
  return Place::elsewhere;
}

Place place_of_operand(const ZydisDecodedOperand& operand) {
  switch (operand.type) {
    case ZYDIS_OPERAND_TYPE_REGISTER: {
      const Place place = place_of_register(operand.reg.value);
      return place == Place::elsewhere ? vector_place(operand.reg.value) : place;
    }
    case ZYDIS_OPERAND_TYPE_MEMORY:
      return Place::memory;
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
      return Place::immediate;
    default:
      return Place::elsewhere;
  }
}

}  // namespace crosstalk::in_target
