// SPDX-License-Identifier: Apache-2.0
// The emulator's instructions on single bits, and atomic exchanges. A flag that the manual calls undefined is unknown.
#include <bit>

#include "collectors/access/emulator.h"

namespace crosstalk::in_target {

void Emulator::set_flags(std::uint64_t set) {
  flags_ = (flags_ & ~condition_flags) | (set & condition_flags);
  flags_known_ |= condition_flags;
}

void Emulator::test_bit(unsigned size, Value value, Value bit) {
  forget_flag(flag_overflow);
  forget_flag(flag_sign);
  forget_flag(flag_parity);
  forget_flag(flag_carry);
  if (value.known && bit.known) {
    set_flag(flag_carry, (value.bits >> (bit.bits % (std::uint64_t{8} * size)) & 1U) != 0);
  }
}

Value Emulator::change_bit(const DecodedInstruction& instruction, Value value, Value bit) {
  test_bit(instruction.size, value, bit);
  if (!value.known || !bit.known) {
    return {};
  }
  const std::uint64_t selected = std::uint64_t{1} << (bit.bits % (std::uint64_t{8} * instruction.size));
  switch (instruction.operation) {
    case Operation::bit_set:
      return {value.bits | selected, true};
    case Operation::bit_reset:
      return {value.bits & ~selected, true};
    default:
      return {value.bits ^ selected, true};
  }
}

bool Emulator::change_carry(Operation operation) {
  switch (operation) {
    case Operation::clear_carry:
    case Operation::set_carry:
      set_flag(flag_carry, operation == Operation::set_carry);
      return true;
    case Operation::complement_carry:
      flags_ ^= flag_carry;
      return true;
    default:
      return false;
  }
}

Value Emulator::exchange_add(const DecodedInstruction& instruction, Value found, Value added) {
  set(instruction.source, instruction.size, found);
  if (!found.known || !added.known) {
    forget_flags();
    return {};
  }
  return sum(instruction.size, found.bits, added.bits, false);
}

Value Emulator::compare_exchange(const DecodedInstruction& instruction, Value found, Value wanted) {
  const unsigned size = instruction.size;
  const Value expected = get(place_of(Register::rax), size);
  if (!found.known || !expected.known) {
    forget_flags();
    set(place_of(Register::rax), size, {});
    return {};
  }
  difference(size, expected.bits, found.bits, false);
  if (expected.bits == found.bits) {
    return wanted;
  }
  set(place_of(Register::rax), size, found);
  // Processors differ: writing back the old value may clear a register's upper half or keep it.
  return is_register(instruction.destination) && size == 4 ? Value{} : found;
}

void Emulator::exchange_wide(unsigned size, Value& low, Value& high) {
  const Value expected_low = get(place_of(Register::rax), size);
  const Value expected_high = get(place_of(Register::rdx), size);
  forget_flag(flag_zero);  // the others are left alone
  if (!low.known || !high.known || !expected_low.known || !expected_high.known) {
    set(place_of(Register::rax), size, {});
    set(place_of(Register::rdx), size, {});
    low = high = {};
    return;
  }
  const bool equal = low.bits == expected_low.bits && high.bits == expected_high.bits;
  set_flag(flag_zero, equal);
  if (equal) {
    low = get(place_of(Register::rbx), size);
    high = get(place_of(Register::rcx), size);
  } else {
    set(place_of(Register::rax), size, low);
    set(place_of(Register::rdx), size, high);
  }
}

/// Finds the first or the last bit that is set, or counts them.
Value Emulator::scan(const DecodedInstruction& instruction, Value value) {
  const unsigned bits = 8U * instruction.size;
  forget_flags();
  if (!value.known) {
    return {};
  }
  const std::uint64_t from = value.bits;
  const auto leading = static_cast<unsigned>(std::countl_zero(from)) - (64 - bits);
  const unsigned trailing = from == 0 ? bits : static_cast<unsigned>(std::countr_zero(from));
  switch (instruction.operation) {
    case Operation::scan_forward:
    case Operation::scan_reverse:
      set_flag(flag_zero, from == 0);
      return {instruction.operation == Operation::scan_forward ? trailing : bits - 1 - leading, from != 0};
    case Operation::count_ones:
      set_flags(from == 0 ? std::uint64_t{flag_zero} : 0);
      return {static_cast<std::uint64_t>(std::popcount(from)), true};
    default:
      break;
  }
  const unsigned counted = instruction.operation == Operation::count_trailing ? trailing : leading;
  set_flag(flag_carry, from == 0);
  set_flag(flag_zero, counted == 0);
  return {counted, true};
}

/// andn, blsr, blsi, blsmsk, bzhi
Value Emulator::isolate(const DecodedInstruction& instruction, Value value, Value other) {
  const unsigned size = instruction.size;
  const Operation operation = instruction.operation;
  const bool two = operation == Operation::and_not || operation == Operation::zero_high_bits;
  forget_flags();
  if (!value.known || (two && !other.known)) {
    return {};
  }
  const std::uint64_t from = value.bits;
  std::uint64_t result = 0;
  bool carry = from == 0;
  switch (operation) {
    case Operation::and_not:
      result = ~from & other.bits;
      carry = false;
      break;
    case Operation::reset_lowest:
      result = from & (from - 1);
      break;
    case Operation::isolate_lowest:
      result = from & (0 - from);
      carry = from != 0;
      break;
    case Operation::mask_lowest:
      result = from ^ (from - 1);
      break;
    default: {  // bzhi
      const unsigned keeps = other.bits & 0xffU;
      carry = keeps >= 8 * size;
      result = carry ? from : from & ((std::uint64_t{1} << keeps) - 1);
    }
  }
  result &= size_mask(size);
  set_result_flags(size, result);
  set_flag(flag_carry, carry);
  set_flag(flag_overflow, false);
  forget_flag(flag_parity);
  return {result, true};
}

/// The bits that are shifted in are another register's.
Value Emulator::shift_double(const DecodedInstruction& instruction, Value value, Value filling, Value count) {
  const unsigned size = instruction.size;
  const unsigned by = static_cast<unsigned>(count.bits) & (size == 8 ? 63U : 31U);
  if (count.known && by == 0) {
    return value;
  }
  forget_flags();
  const unsigned bits = 8 * size;
  if (!count.known || !value.known || !filling.known || by >= bits) {  // at 16 bits, more than there are
    return {};
  }
  const bool left = instruction.operation == Operation::shift_double_left;
  const std::uint64_t result =
      (left ? value.bits << by | filling.bits >> (bits - by) : value.bits >> by | filling.bits << (bits - by)) &
      size_mask(size);
  set_result_flags(size, result);
  set_flag(flag_carry, (left ? value.bits >> (bits - by) & 1U : value.bits >> (by - 1) & 1U) != 0);
  if (by == 1) {
    set_flag(flag_overflow, sign_bit(result, size) != sign_bit(value.bits, size));
  }
  return {result, true};
}

}  // namespace crosstalk::in_target
