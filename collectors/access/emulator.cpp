// SPDX-License-Identifier: Apache-2.0
// Flags follow the Intel SDM, volume 2; a flag that it calls undefined is unknown here.
#include "collectors/access/emulator.h"

#include <cstring>

namespace crosstalk::in_target {

namespace {

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
  if (top.known) {
    top.bits += instruction.dropped_arguments();
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
    case Operation::bit_set:
    case Operation::bit_reset:
    case Operation::bit_complement:
      return change_bit(instruction, a, b);
    case Operation::scan_forward:
    case Operation::scan_reverse:
    case Operation::count_trailing:
    case Operation::count_leading:
    case Operation::count_ones:
      return scan(instruction, b);
    case Operation::and_not:
    case Operation::reset_lowest:
    case Operation::isolate_lowest:
    case Operation::mask_lowest:
    case Operation::zero_high_bits:
      return isolate(instruction, b, c);
    case Operation::shift_double_left:
    case Operation::shift_double_right:
      return shift_double(instruction, a, b, c);
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

/// Executes instructions that write something other than their first operand. Returns false for all other instructions.
bool Emulator::execute_apart(const DecodedInstruction& instruction, const Operands& operands) {
  switch (instruction.operation) {
    case Operation::other:
    case Operation::vector:  // the vector unit's, if there is one
    case Operation::compare_exchange_wide:
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
      return leaves_machine_alone(instruction.operation) || change_carry(instruction.operation);
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
    case Operation::exchange_add:
      result = exchange_add(instruction, operands.destination, operands.source);
      break;
    case Operation::compare_exchange:
      result = compare_exchange(instruction, operands.destination, operands.source);
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
