// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/unwind/expression.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace crosstalk::symbolizer {
namespace {

constexpr int most_steps = 1000;

/// A running evaluation. Member functions set `failed` instead of going out of bounds.
class Machine {
 public:
  Machine(const Registers& registers, const StackMemory& memory, std::optional<std::uint64_t> cfa)
      : registers_(registers), memory_(memory), cfa_(cfa) {}

  void execute(const Operation& operation);
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::uint64_t pop();
  void push(std::uint64_t value);

 private:
  void push_register(std::uint64_t number, std::uint64_t offset);
  void dereference(std::size_t width);
  void pick(std::size_t depth);
  bool execute_stack(const Operation& operation);
  bool execute_unary(const Operation& operation);
  bool execute_binary(const Operation& operation);

  const Registers& registers_;
  const StackMemory& memory_;
  std::optional<std::uint64_t> cfa_;
  std::array<std::uint64_t, 64> stack_{};
  std::size_t size_ = 0;
  bool failed_ = false;
};

std::uint64_t Machine::pop() {
  if (size_ == 0) {
    failed_ = true;
    return 0;
  }
  return stack_[--size_];
}

void Machine::push(std::uint64_t value) {
  if (size_ == stack_.size()) {
    failed_ = true;
    return;
  }
  stack_[size_++] = value;
}

void Machine::push_register(std::uint64_t number, std::uint64_t offset) {
  if (number >= register_count) {
    failed_ = true;
    return;
  }
  push(registers_.value[number] + offset);
}

void Machine::dereference(std::size_t width) {
  const auto value = memory_.read(pop(), width);
  failed_ = failed_ || !value;
  push(value.value_or(0));
}

void Machine::pick(std::size_t depth) {
  if (depth >= size_) {
    failed_ = true;
    return;
  }
  push(stack_[size_ - 1 - depth]);
}

bool Machine::execute_stack(const Operation& operation) {
  switch (operation.code) {
    case DW_OP_dup:
      pick(0);
      return true;
    case DW_OP_over:
      pick(1);
      return true;
    case DW_OP_pick:
      pick(operation.first);
      return true;
    case DW_OP_drop:
      static_cast<void>(pop());
      return true;
    case DW_OP_swap: {
      const std::uint64_t top = pop();
      const std::uint64_t below = pop();
      push(top);
      push(below);
      return true;
    }
    case DW_OP_call_frame_cfa:
      failed_ = failed_ || !cfa_;
      push(cfa_.value_or(0));
      return true;
    case DW_OP_deref:
      dereference(8);
      return true;
    case DW_OP_deref_size:
      dereference(operation.first);
      return true;
    case DW_OP_nop:
      return true;
    default:
      return false;
  }
}

bool Machine::execute_unary(const Operation& operation) {
  switch (operation.code) {
    case DW_OP_plus_uconst:
      push(pop() + operation.first);
      return true;
    case DW_OP_neg:
      push(0 - pop());
      return true;
    case DW_OP_not:
      push(~pop());
      return true;
    default:
      return false;
  }
}

bool Machine::execute_binary(const Operation& operation) {
  static constexpr std::array<std::uint8_t, 14> known = {DW_OP_and, DW_OP_or,  DW_OP_xor, DW_OP_plus, DW_OP_minus,
                                                         DW_OP_mul, DW_OP_shl, DW_OP_shr, DW_OP_eq,   DW_OP_ge,
                                                         DW_OP_gt,  DW_OP_le,  DW_OP_lt,  DW_OP_ne};
  if (std::find(known.begin(), known.end(), operation.code) == known.end()) {
    return false;
  }
  const std::uint64_t b = pop();
  const std::uint64_t a = pop();
  const auto signed_a = static_cast<std::int64_t>(a);
  const auto signed_b = static_cast<std::int64_t>(b);
  switch (operation.code) {
    case DW_OP_and:
      push(a & b);
      break;
    case DW_OP_or:
      push(a | b);
      break;
    case DW_OP_xor:
      push(a ^ b);
      break;
    case DW_OP_plus:
      push(a + b);
      break;
    case DW_OP_minus:
      push(a - b);
      break;
    case DW_OP_mul:
      push(a * b);
      break;
    case DW_OP_shl:
      push(b < 64 ? a << b : 0);
      break;
    case DW_OP_shr:
      push(b < 64 ? a >> b : 0);
      break;
    case DW_OP_eq:
      push(a == b ? 1 : 0);
      break;
    case DW_OP_ne:
      push(a != b ? 1 : 0);
      break;
    case DW_OP_ge:
      push(signed_a >= signed_b ? 1 : 0);
      break;
    case DW_OP_gt:
      push(signed_a > signed_b ? 1 : 0);
      break;
    case DW_OP_le:
      push(signed_a <= signed_b ? 1 : 0);
      break;
    default:
      push(signed_a < signed_b ? 1 : 0);
      break;
  }
  return true;
}

void Machine::execute(const Operation& operation) {
  const std::uint8_t code = operation.code;
  if (code >= DW_OP_breg0 && code <= DW_OP_breg31) {
    push_register(code - DW_OP_breg0, operation.first);
  } else if (code == DW_OP_bregx) {
    push_register(operation.first, operation.second);
  } else if (code >= DW_OP_lit0 && code <= DW_OP_lit31) {
    push(static_cast<std::uint64_t>(code - DW_OP_lit0));
  } else if (code == DW_OP_addr || (code >= DW_OP_const1u && code <= DW_OP_consts)) {
    push(operation.first);  // libdw has sign-extended the signed forms
  } else if (!execute_stack(operation) && !execute_unary(operation) && !execute_binary(operation)) {
    failed_ = true;
  }
}

/// The index of the target operation of a branch; operations.size() for the end, nullopt if there is none.
std::optional<std::size_t> branch_target(std::span<const Operation> operations, const Operation& operation) {
  constexpr std::uint64_t branch_bytes = 3;
  const std::uint64_t offset =
      operation.offset + branch_bytes + static_cast<std::uint64_t>(static_cast<std::int16_t>(operation.first));
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].offset == offset) {
      return i;
    }
  }
  return !operations.empty() && offset > operations.back().offset ? std::optional(operations.size()) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> StackMemory::read(std::uint64_t address, std::size_t width) const {
  const std::uint64_t offset = address - begin_;
  if (address < begin_ || width == 0 || width > 8 || offset > bytes_.size() || bytes_.size() - offset < width) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, bytes_.data() + offset, width);
  return value;
}

std::optional<std::uint64_t> evaluate(std::span<const Operation> operations, const Registers& registers,
                                      const StackMemory& memory, std::optional<std::uint64_t> cfa) {
  Machine machine(registers, memory, cfa);
  std::size_t at = 0;
  for (int steps = 0; at < operations.size(); ++steps) {
    const Operation& operation = operations[at];
    if (steps == most_steps || machine.failed()) {
      return std::nullopt;
    }
    ++at;
    if (operation.code == DW_OP_skip || (operation.code == DW_OP_bra && machine.pop() != 0)) {
      const auto target = branch_target(operations, operation);
      if (!target) {
        return std::nullopt;
      }
      at = *target;
    } else if (operation.code != DW_OP_bra) {
      machine.execute(operation);
    }
  }
  const std::uint64_t value = machine.pop();
  return machine.failed() ? std::nullopt : std::optional(value);
}

}  // namespace crosstalk::symbolizer
