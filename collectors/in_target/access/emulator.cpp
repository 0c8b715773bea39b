// SPDX-License-Identifier: Apache-2.0
// Flags follow the Intel SDM, volume 2; a flag that it calls undefined is unknown here.
#include "collectors/in_target/access/emulator.h"

#include <cstring>

namespace crosstalk::in_target {

namespace {

__extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using): __extension__ needs a typedef
__extension__ typedef __int128 WideSigned;     // NOLINT(modernize-use-using)

constexpr unsigned number(Place place) { return static_cast<unsigned>(place) & 15U; }

/// Transfers of control and what works on the stack or on strings: the caller's.
constexpr bool leaves_machine_alone(Operation operation) {
  switch (operation) {
    case Operation::stop:
    case Operation::nop:
    case Operation::jump_if:
    case Operation::jump:
    case Operation::call:
    case Operation::ret:
    case Operation::push:
    case Operation::pop:
    case Operation::leave:
    case Operation::string:
      return true;
    default:
      return false;
  }
}

constexpr bool sign_bit(std::uint64_t bits, unsigned size) { return (bits >> (8 * size - 1) & 1U) != 0; }

}  // namespace

Emulator::Emulator(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base)
    : flags_(flags & (condition_flags | flag_direction)),
      flags_known_(condition_flags | flag_direction),
      fs_base_(fs_base) {
  std::memcpy(value_, registers.value.data(), sizeof(value_));
  std::memset(known_, 0xff, sizeof(known_));
}

Value Emulator::get(Place place, unsigned size) const {
  if (size > 8) {
    return {};
  }
  if (is_register(place)) {
    const unsigned needed = (1U << size) - 1U;
    if ((known_[number(place)] & needed) != (needed & 0xffU)) {
      return {};
    }
    return {value_[number(place)] & size_mask(size), true};
  }
  if (is_high_byte(place) && (known_[number(place)] & 2U) != 0) {
    return {value_[number(place)] >> 8U & 0xffU, true};
  }
  return {};
}

void Emulator::set(Place place, unsigned size, Value value) {
  if (!is_register(place) && !is_high_byte(place)) {
    return;
  }
  const unsigned r = number(place);
  const unsigned shift = is_high_byte(place) ? 8 : 0;
  const bool whole = size >= 4 && shift == 0;
  const std::uint64_t mask = whole ? ~std::uint64_t{0} : size_mask(size) << shift;
  const unsigned bytes = whole ? 0xffU : ((1U << size) - 1U) << shift / 8;
  value_[r] = (value_[r] & ~mask) | (((value.bits & size_mask(size)) << shift) & mask);
  known_[r] = static_cast<std::uint8_t>(value.known ? known_[r] | bytes : known_[r] & ~bytes);
}

void Emulator::forget(std::uint16_t registers) {
  for (unsigned r = 0; registers != 0; ++r, registers >>= 1U) {
    if ((registers & 1U) != 0) {
      known_[r] = 0;
    }
  }
}

Truth Emulator::runs_down() const {
  if ((flags_known_ & flag_direction) == 0) {
    return Truth::unknown;
  }
  return (flags_ & flag_direction) != 0 ? Truth::yes : Truth::no;
}

Truth Emulator::holds(std::uint8_t condition) const {
  constexpr std::uint64_t used[8] = {flag_overflow,
                                     flag_carry,
                                     flag_zero,
                                     std::uint64_t{flag_carry} | flag_zero,
                                     flag_sign,
                                     flag_parity,
                                     std::uint64_t{flag_sign} | flag_overflow,
                                     std::uint64_t{flag_zero} | flag_sign | flag_overflow};
  const unsigned which = condition >> 1U & 7U;
  if ((flags_known_ & used[which]) != used[which]) {
    return Truth::unknown;
  }
  return condition_holds(condition, flags_) ? Truth::yes : Truth::no;
}

Value Emulator::address(const DecodedInstruction& instruction, std::uint64_t after) const {
  if (instruction.has(trait_address_unknown)) {
    return {};
  }
  std::uint64_t sum = instruction.has(trait_wide_displacement)
                          ? instruction.wide()
                          : static_cast<std::uint64_t>(std::int64_t{instruction.displacement});
  const unsigned width = instruction.has(trait_address32) ? 4 : 8;
  if (instruction.base == rip_register) {
    sum += after;
  } else if (instruction.base != no_register) {
    const Value base = get(static_cast<Place>(instruction.base), width);
    if (!base.known) {
      return {};
    }
    sum += base.bits;
  }
  if (instruction.index != no_register) {
    const Value index = get(static_cast<Place>(instruction.index), width);
    if (!index.known) {
      return {};
    }
    sum += index.bits * instruction.scale();
  }
  sum &= size_mask(width);
  return {instruction.has(trait_fs) ? sum + fs_base_ : sum, true};
}

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

/// Only where the dividend fits the operand's size: a 128-bit division would need a library.
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

Value Emulator::fetch(const DecodedInstruction& instruction, Place place, unsigned size, Value memory) const {
  if (place == Place::memory) {
    return {memory.bits & size_mask(size), memory.known};
  }
  if (place == Place::immediate) {
    return {instruction.immediate_value() & size_mask(size), true};
  }
  return get(place, size);
}

Value Emulator::target(const DecodedInstruction& instruction, std::uint64_t after, Value memory) const {
  if (instruction.source == Place::immediate) {
    return {after + instruction.immediate_value(), true};
  }
  return is_register(instruction.source) ? get(instruction.source, 8) : memory;
}

void Emulator::receive(const DecodedInstruction& instruction, Value popped) {
  set(instruction.destination, instruction.size, popped);
  if (instruction.has(trait_writes_flags)) {
    forget_flags();
    forget_direction();
  }
}

void Emulator::drop_arguments(const DecodedInstruction& instruction) {
  Value top = get(Register::rsp);
  if (top.known && instruction.source == Place::none && instruction.destination == Place::immediate) {
    top.bits += instruction.immediate_value() & 0xffffU;
    set(Register::rsp, top);
  }
}

Value Emulator::compute(const DecodedInstruction& instruction, const Operands& operands) {
  const auto& [a, b, c] = operands;
  const unsigned size = instruction.size;
  switch (instruction.operation) {
    case Operation::move:
      return b;
    case Operation::move_signed:
      return {sign_extend(b.bits, instruction.source_size) & size_mask(size), b.known};
    case Operation::sign_fill:
      return {sign_bit(b.bits, size) ? size_mask(size) : 0, b.known};
    case Operation::add:
    case Operation::add_carry:
    case Operation::subtract:
    case Operation::subtract_borrow:
    case Operation::compare:
      return arithmetic(instruction, a, b);
    case Operation::bit_and:
    case Operation::bit_or:
    case Operation::bit_xor:
    case Operation::test:
      return logic(instruction, a, b);
    case Operation::bit_not:
      return {~a.bits & size_mask(size), a.known};
    case Operation::shift_left:
    case Operation::shift_right:
    case Operation::shift_right_signed:
      return instruction.second == Place::none ? shift(instruction, a, b) : shift(instruction, b, c);
    case Operation::rotate_left:
    case Operation::rotate_right:
      return rotate(instruction, a, b);
    case Operation::multiply:
      return multiply(size, b, c);
    case Operation::byte_swap:
      return {size == 8 ? __builtin_bswap64(a.bits) : __builtin_bswap32(static_cast<std::uint32_t>(a.bits)), a.known};
    default:
      return {};
  }
}

Emulator::Operands Emulator::fetch_operands(const DecodedInstruction& instruction, Value memory) const {
  const Operation operation = instruction.operation;
  const unsigned size = instruction.size;
  unsigned source_size = size;
  if (operation == Operation::move || operation == Operation::move_signed) {
    source_size = instruction.source_size;
  } else if (operation >= Operation::shift_left && operation <= Operation::rotate_right &&
             instruction.second == Place::none) {
    source_size = 1;  // cl
  }
  return {fetch(instruction, instruction.destination, size, memory),
          fetch(instruction, instruction.source, source_size, memory),
          fetch(instruction, instruction.second, size, memory)};
}

/// inc and dec leave the carry flag alone.
Value Emulator::step_by_one(const DecodedInstruction& instruction, Value value) {
  const std::uint64_t carry = flags_ & flag_carry;
  const std::uint64_t carry_known = flags_known_ & flag_carry;
  DecodedInstruction by_one = instruction;
  by_one.operation = instruction.operation == Operation::increment ? Operation::add : Operation::subtract;
  const Value result = arithmetic(by_one, value, {1, true});
  flags_ = (flags_ & ~std::uint64_t{flag_carry}) | carry;
  flags_known_ = (flags_known_ & ~std::uint64_t{flag_carry}) | carry_known;
  return result;
}

Value Emulator::negate(const DecodedInstruction& instruction, Value value) {
  DecodedInstruction from_zero = instruction;
  from_zero.operation = Operation::subtract;
  return arithmetic(from_zero, {0, true}, value);
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

/// What instructions do that write something other than their first operand. False: it is none of those.
bool Emulator::execute_apart(const DecodedInstruction& instruction, const Operands& operands) {
  switch (instruction.operation) {
    case Operation::other:
      forget(instruction.clobbers);
      if (instruction.has(trait_writes_flags)) {
        forget_flags();
      }
      return true;
    case Operation::bit_test:
      test_bit(instruction.size, operands.destination, operands.source);
      return true;
    case Operation::multiply_wide:
    case Operation::multiply_wide_signed:
      multiply_wide(instruction, operands.source);
      return true;
    case Operation::divide:
    case Operation::divide_signed:
      divide(instruction, operands.source);
      return true;
    case Operation::clear_direction:
    case Operation::set_direction:
      set_flag(flag_direction, instruction.operation == Operation::set_direction);
      return true;
    case Operation::compare:
    case Operation::test:
      compute(instruction, operands);
      return true;
    default:
      return leaves_machine_alone(instruction.operation);
  }
}

Value Emulator::execute(const DecodedInstruction& instruction, std::uint64_t after, Value memory) {
  const unsigned size = instruction.size;
  const Operands operands = fetch_operands(instruction, memory);
  if (execute_apart(instruction, operands)) {
    return {};
  }
  Value result;
  switch (instruction.operation) {
    case Operation::lea:
      result = address(instruction, after);
      break;
    case Operation::exchange:
      set(instruction.source, size, operands.destination);
      result = operands.source;
      break;
    case Operation::increment:
    case Operation::decrement:
      result = step_by_one(instruction, operands.destination);
      break;
    case Operation::negate:
      result = negate(instruction, operands.destination);
      break;
    case Operation::set_if: {
      const Truth truth = holds(instruction.condition);
      result = {truth == Truth::yes ? 1U : 0U, truth != Truth::unknown};
      break;
    }
    case Operation::move_if: {
      const Truth truth = holds(instruction.condition);
      result = truth == Truth::yes ? operands.source : operands.destination;
      result.known = result.known && truth != Truth::unknown;
      break;
    }
    default:
      result = compute(instruction, operands);
  }
  if (!result.known) {
    result.bits = 0;
  }
  set(instruction.destination, size, result);
  return result;
}

bool Emulator::agrees_with(const Emulator& other) const {
  for (unsigned r = 0; r < 16; ++r) {
    std::uint64_t differing = value_[r] ^ other.value_[r];
    const unsigned both = known_[r] & other.known_[r];
    if (both == 0xff && differing != 0) {
      return false;
    }
    for (unsigned byte = 0; both != 0xff && byte < 8; ++byte, differing >>= 8U) {
      if ((both >> byte & 1U) != 0 && (differing & 0xffU) != 0) {
        return false;
      }
    }
  }
  return ((flags_ ^ other.flags_) & flags_known_ & other.flags_known_) == 0;
}

bool Emulator::comparable(const Emulator& other, const Emulator& before) const {
  for (unsigned r = 0; r < 16; ++r) {
    if ((known_[r] & other.known_[r] & ~static_cast<unsigned>(before.known_[r])) != 0) {
      return true;
    }
  }
  return (flags_known_ & other.flags_known_ & ~before.flags_known_) != 0;
}

}  // namespace crosstalk::in_target
