// SPDX-License-Identifier: Apache-2.0
// The emulator's arithmetic, logic and shifts on general registers, and the flags that they leave. Flags that the
// manual calls undefined are unknown.
#include "collectors/access/emulator.h"

namespace crosstalk::in_target {

namespace {

__extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using): __extension__ needs a typedef
__extension__ typedef __int128 WideSigned;     // NOLINT(modernize-use-using)

}  // namespace

void Emulator::set_flag(Flag flag, bool on) {
  flags_ = on ? flags_ | flag : flags_ & ~static_cast<std::uint64_t>(flag);
  flags_known_ |= flag;
}

void Emulator::set_result_flags(unsigned size, std::uint64_t result) {
  set_flag(flag_zero, (result & size_mask(size)) == 0);
  set_flag(flag_sign, sign_bit(result, size));
  std::uint64_t low = result & 0xffU;
  low ^= low >> 4U;
  low ^= low >> 2U;
  low ^= low >> 1U;
  set_flag(flag_parity, (low & 1U) == 0);
}

Value Emulator::sum(unsigned size, std::uint64_t a, std::uint64_t b, bool carry) {
  const std::uint64_t result = (a + b + (carry ? 1 : 0)) & size_mask(size);
  set_flag(flag_carry, carry ? result <= a : result < a);
  set_flag(flag_overflow, sign_bit((a ^ result) & (b ^ result), size));
  set_result_flags(size, result);
  return {result, true};
}

Value Emulator::difference(unsigned size, std::uint64_t a, std::uint64_t b, bool borrow) {
  const std::uint64_t result = (a - b - (borrow ? 1 : 0)) & size_mask(size);
  set_flag(flag_carry, borrow ? a <= b : a < b);
  set_flag(flag_overflow, sign_bit((a ^ b) & (a ^ result), size));
  set_result_flags(size, result);
  return {result, true};
}

Value Emulator::arithmetic(const DecodedInstruction& instruction, Value a, Value b) {
  const unsigned size = instruction.size;
  const Operation operation = instruction.operation;
  const bool with_carry = operation == Operation::add_carry || operation == Operation::subtract_borrow;
  const bool same = instruction.destination == instruction.source && instruction.destination != Place::memory;
  if (!a.known && same && operation != Operation::add && operation != Operation::add_carry) {
    a = b = {0, true};  // r - r does not depend on r
  }
  if (!a.known || !b.known || (with_carry && (flags_known_ & flag_carry) == 0)) {
    forget_flags();
    return {};
  }
  const bool carry = with_carry && (flags_ & flag_carry) != 0;
  if (operation == Operation::add || operation == Operation::add_carry) {
    return sum(size, a.bits, b.bits, carry);
  }
  return difference(size, a.bits, b.bits, carry);
}

Value Emulator::logic(const DecodedInstruction& instruction, Value a, Value b) {
  const unsigned size = instruction.size;
  const bool same = instruction.destination == instruction.source && instruction.destination != Place::memory;
  if (instruction.operation == Operation::bit_xor && same) {
    a = b = {0, true};
  }
  const bool is_and = instruction.operation == Operation::bit_and || instruction.operation == Operation::test;
  const bool fixed = is_and ? (a.known && a.bits == 0) || (b.known && b.bits == 0)
                            : instruction.operation == Operation::bit_or &&
                                  ((a.known && a.bits == size_mask(size)) || (b.known && b.bits == size_mask(size)));
  if (!fixed && !(a.known && b.known)) {
    forget_flags();
    return {};
  }
  std::uint64_t result = a.bits ^ b.bits;
  if (is_and) {
    result = fixed ? 0 : a.bits & b.bits;
  } else if (instruction.operation == Operation::bit_or) {
    result = fixed ? size_mask(size) : a.bits | b.bits;
  }
  set_flag(flag_carry, false);
  set_flag(flag_overflow, false);
  set_result_flags(size, result);
  return {result, true};
}

Value Emulator::shift(const DecodedInstruction& instruction, Value value, Value count) {
  const unsigned size = instruction.size;
  const bool flags = instruction.second == Place::none;  // shlx, shrx, sarx leave them alone
  const unsigned by = static_cast<unsigned>(count.bits) & (size == 8 ? 63U : 31U);
  if (!count.known || (by != 0 && !value.known)) {
    if (flags) {
      forget_flags();
    }
    return {};
  }
  if (by == 0) {
    return value;
  }
  const unsigned bits = 8 * size;
  const std::uint64_t wide = sign_extend(value.bits, size);
  std::uint64_t result = 0;
  bool carry = false;
  if (instruction.operation == Operation::shift_left) {
    result = value.bits << by;
    carry = by <= bits && (value.bits >> (bits - by) & 1U) != 0;
  } else if (instruction.operation == Operation::shift_right) {
    result = value.bits >> by;
    carry = (value.bits >> (by - 1) & 1U) != 0;
  } else {
    result = static_cast<std::uint64_t>(static_cast<std::int64_t>(wide) >> by);
    carry = (static_cast<std::int64_t>(wide) >> (by - 1) & 1) != 0;
  }
  result &= size_mask(size);
  if (flags) {
    set_result_flags(size, result);
    set_flag(flag_carry, carry);
    if (by >= bits) {
      forget_flag(flag_carry);
    }
    if (by != 1) {
      forget_flag(flag_overflow);
    } else if (instruction.operation == Operation::shift_left) {
      set_flag(flag_overflow, sign_bit(result, size) != carry);
    } else {
      set_flag(flag_overflow, instruction.operation == Operation::shift_right && sign_bit(value.bits, size));
    }
  }
  return {result, true};
}

Value Emulator::rotate(const DecodedInstruction& instruction, Value value, Value count) {
  const unsigned size = instruction.size;
  const unsigned bits = 8 * size;
  const unsigned masked = static_cast<unsigned>(count.bits) & (size == 8 ? 63U : 31U);
  if (!count.known || masked != 0) {
    forget_flag(flag_carry);
    forget_flag(flag_overflow);
  }
  if (!count.known || !value.known) {
    return {};
  }
  const unsigned by = instruction.operation == Operation::rotate_left ? masked % bits : (bits - masked % bits) % bits;
  if (by == 0) {
    return value;
  }
  return {((value.bits << by) | (value.bits >> (bits - by))) & size_mask(size), true};
}

Value Emulator::multiply(unsigned size, Value a, Value b) {
  forget_flags();
  if (!a.known || !b.known) {
    const bool zero = (a.known && a.bits == 0) || (b.known && b.bits == 0);
    return {0, zero};
  }
  return {(a.bits * b.bits) & size_mask(size), true};
}

void Emulator::multiply_wide(const DecodedInstruction& instruction, Value factor) {
  const unsigned size = instruction.size;
  const Value a = get(place_of(Register::rax), size);
  forget_flags();
  if (size == 1 || !a.known || !factor.known) {
    forget(instruction.clobbers);
    return;
  }
  Wide product = Wide{a.bits} * factor.bits;
  if (instruction.operation == Operation::multiply_wide_signed) {
    const auto left = static_cast<std::int64_t>(sign_extend(a.bits, size));
    const auto right = static_cast<std::int64_t>(sign_extend(factor.bits, size));
    product = static_cast<Wide>(WideSigned{left} * right);
  }
  set(place_of(Register::rax), size, {static_cast<std::uint64_t>(product) & size_mask(size), true});
  set(place_of(Register::rdx), size, {static_cast<std::uint64_t>(product >> (8 * size)) & size_mask(size), true});
}

/// Divides only if the dividend fits the operand's size: a 128-bit division would need a library.
void Emulator::divide(const DecodedInstruction& instruction, Value divisor) {
  const unsigned size = instruction.size;
  const Value low = get(place_of(Register::rax), size);
  const Value high = get(place_of(Register::rdx), size);
  const bool is_signed = instruction.operation == Operation::divide_signed;
  forget_flags();
  const std::uint64_t extension = is_signed && sign_bit(low.bits, size) ? size_mask(size) : 0;
  const std::uint64_t by = is_signed ? sign_extend(divisor.bits, size) : divisor.bits;
  const bool traps = by == 0 || (is_signed && by == ~std::uint64_t{0});  // -1: may overflow, and is rare
  if (size == 1 || !low.known || !high.known || !divisor.known || high.bits != extension || traps) {
    forget(instruction.clobbers);
    return;
  }
  std::uint64_t quotient = 0;
  std::uint64_t remainder = 0;
  if (is_signed) {
    const auto dividend = static_cast<std::int64_t>(sign_extend(low.bits, size));
    quotient = static_cast<std::uint64_t>(dividend / static_cast<std::int64_t>(by));
    remainder = static_cast<std::uint64_t>(dividend % static_cast<std::int64_t>(by));
  } else {
    quotient = low.bits / by;
    remainder = low.bits % by;
  }
  set(place_of(Register::rax), size, {quotient & size_mask(size), true});
  set(place_of(Register::rdx), size, {remainder & size_mask(size), true});
}

}  // namespace crosstalk::in_target
