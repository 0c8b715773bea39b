// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/provenance.h"

#include <bit>
#include <utility>

namespace crosstalk::in_target {

namespace {

constexpr std::uint8_t rsp = static_cast<std::uint8_t>(Register::rsp);
constexpr std::uint8_t rbp = static_cast<std::uint8_t>(Register::rbp);
constexpr std::uint8_t rdi = static_cast<std::uint8_t>(Register::rdi);
constexpr std::uint8_t rsi = static_cast<std::uint8_t>(Register::rsi);

constexpr std::uint8_t register_number(Place place) { return static_cast<std::uint8_t>(place); }

bool moves_stack_pointer(Operation operation) {
  return operation == Operation::push || operation == Operation::pop || operation == Operation::call ||
         operation == Operation::ret;
}

bool exchanges_registers(const DecodedInstruction& instruction) {
  return instruction.operation == Operation::exchange && instruction.size == 8 && is_register(instruction.source) &&
         is_register(instruction.destination);
}

/// lea r, [r + displacement]
bool adds_to_itself(const DecodedInstruction& lea) {
  const std::uint8_t r = register_number(lea.destination);
  const bool as_base = lea.base == r && lea.index == no_register;
  const bool as_index = lea.index == r && lea.base == no_register && lea.scale() == 1;
  return lea.size == 8 && !lea.has(trait_address32) && !lea.has(trait_fs) && (as_base || as_index);
}

}  // namespace

bool is_zeroing(const DecodedInstruction& instruction) {
  return (instruction.operation == Operation::bit_xor || instruction.operation == Operation::subtract) &&
         instruction.size >= 4 && is_register(instruction.destination) && instruction.source == instruction.destination;
}

void Provenance::mix(std::uint16_t registers) {
  for (unsigned r = 0; registers != 0; ++r, registers >>= 1U) {
    if ((registers & 1U) != 0) {
      origin_[r] = RegisterForm::mixed;
    }
  }
}

/// True if the destination, a whole register, changes by a constant.
bool Provenance::adds_constant(const DecodedInstruction& instruction) const {
  if (instruction.size != 8 || !is_register(instruction.destination)) {
    return false;
  }
  switch (instruction.operation) {
    case Operation::increment:
    case Operation::decrement:
      return true;
    case Operation::add:
    case Operation::subtract:
      return instruction.source == Place::immediate ||
             (is_register(instruction.source) && instruction.source != instruction.destination &&
              origin_[register_number(instruction.source)] == RegisterForm::constant);
    default:
      return false;
  }
}

std::uint8_t Provenance::of_sum(const DecodedInstruction& lea) const {
  if (lea.size != 8 || lea.has(trait_address32) || lea.has(trait_fs) || lea.has(trait_address_unknown)) {
    return RegisterForm::mixed;
  }
  const std::uint8_t base =
      lea.base == no_register || lea.base == rip_register ? RegisterForm::constant : origin_[lea.base];
  const std::uint8_t index = lea.index == no_register ? RegisterForm::constant : origin_[lea.index];
  if (index == RegisterForm::constant) {
    return base;
  }
  return base == RegisterForm::constant && lea.scale() == 1 ? index : RegisterForm::mixed;
}

std::uint8_t Provenance::of_result(const DecodedInstruction& instruction) const {
  if (is_zeroing(instruction)) {
    return RegisterForm::constant;
  }
  if (adds_constant(instruction)) {
    return origin_[register_number(instruction.destination)];
  }
  if (instruction.operation == Operation::lea) {
    return of_sum(instruction);
  }
  if (instruction.operation != Operation::move) {
    return RegisterForm::mixed;
  }
  if (instruction.source == Place::immediate && instruction.size >= 4) {
    return RegisterForm::constant;
  }
  const bool whole = instruction.size == 8 && instruction.source_size == 8 && is_register(instruction.source);
  return whole ? origin_[register_number(instruction.source)] : RegisterForm::mixed;
}

void Provenance::advance(const DecodedInstruction& instruction) {
  const std::array<std::uint8_t, 16> before = origin_;
  const std::uint8_t result = of_result(instruction);
  mix(instruction.clobbers);
  if (moves_stack_pointer(instruction.operation)) {
    origin_[rsp] = before[rsp];
    if (instruction.operation == Operation::pop && is_register(instruction.destination)) {
      origin_[register_number(instruction.destination)] = RegisterForm::mixed;
    }
  } else if (instruction.operation == Operation::leave) {
    origin_[rsp] = before[rbp];
    origin_[rbp] = RegisterForm::mixed;
  } else if (exchanges_registers(instruction)) {
    origin_[register_number(instruction.destination)] = before[register_number(instruction.source)];
    origin_[register_number(instruction.source)] = before[register_number(instruction.destination)];
  } else if (instruction.operation != Operation::compare && instruction.operation != Operation::test &&
             instruction.operation != Operation::bit_test) {
    if (is_register(instruction.destination)) {
      origin_[register_number(instruction.destination)] = result;
    } else if (is_high_byte(instruction.destination)) {
      origin_[register_number(instruction.destination) & 3U] = RegisterForm::mixed;
    }
  }
}

void Provenance::go_back(const DecodedInstruction& instruction) {
  const std::array<std::uint8_t, 16> after = origin_;
  const bool keeps = adds_constant(instruction);
  mix(instruction.clobbers);
  const std::uint8_t destination =
      is_register(instruction.destination) ? register_number(instruction.destination) : no_register;
  if (moves_stack_pointer(instruction.operation) && destination != rsp) {
    origin_[rsp] = after[rsp];
  } else if (exchanges_registers(instruction)) {
    origin_[destination] = after[register_number(instruction.source)];
    origin_[register_number(instruction.source)] = after[destination];
  } else if (keeps) {
    origin_[destination] = after[destination];
  } else if (instruction.operation == Operation::lea && destination != no_register) {
    origin_[destination] = adds_to_itself(instruction) ? after[destination] : RegisterForm::mixed;
  } else if (instruction.operation == Operation::move && instruction.size == 8 && instruction.source_size == 8 &&
             is_register(instruction.source) && destination != no_register &&
             instruction.source != instruction.destination) {
    const std::uint8_t source = register_number(instruction.source);
    origin_[source] = origin_[source] == RegisterForm::mixed ? after[destination] : origin_[source];
  } else if (instruction.operation == Operation::string) {
    origin_[rdi] = after[rdi];
    origin_[rsi] = after[rsi];
  }
}

RegisterForm Provenance::form(const DecodedInstruction& instruction, std::uint64_t address, const Registers& registers,
                              std::uint64_t fs_base) const {
  RegisterForm form;
  if (instruction.has(trait_address_unknown) || instruction.has(trait_address32)) {
    return form;
  }
  form.base = instruction.base == no_register || instruction.base == rip_register ? RegisterForm::constant
                                                                                  : origin_[instruction.base];
  form.index = instruction.index == no_register ? RegisterForm::constant : origin_[instruction.index];
  form.shift = static_cast<std::uint8_t>(std::countr_zero(instruction.scale() | 8U));
  form.fs = instruction.has(trait_fs);
  form.offset = address - register_or_zero(registers, form.base) -
                (register_or_zero(registers, form.index) << form.shift) - (form.fs ? fs_base : 0);
  return form;
}

}  // namespace crosstalk::in_target
