// SPDX-License-Identifier: Apache-2.0
// Executes, one at a time, the instructions that an interrupted thread would execute next. Works on a copy of the
// thread's registers (emulator.h), and on a memory that hides stores from the thread. An observer uses the steps: the
// search for the next access (next_access.cpp), or a lookahead along the thread's loop (lookahead.cpp).
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "collectors/access/code.h"
#include "collectors/access/decoded_instruction.h"
#include "collectors/access/emulator.h"

namespace crosstalk::in_target {

/// No vector registers: the results of vector instructions are unknown.
struct NoVectors {
  template <class Memory>
  void execute(const DecodedInstruction& instruction, Emulator& emulator, Value address, Memory& memory) {
    emulator.execute(instruction, 0, {});
    if (!instruction.has(trait_explicit_access) || !stores(instruction.kind())) {
      return;
    }
    if (address.known) {
      memory.store(address.bits, instruction.width, {});
    } else {
      memory.store_anywhere();
    }
  }
  void passed_by(const DecodedInstruction& /*instruction*/) {}
};

/// `Memory` has load(address, width), store(address, width, value) and store_anywhere(). `Vectors` has vector and mask
/// registers, or none (NoVectors): execute(instruction, emulator, address, memory) and passed_by(instruction), for an
/// instruction that may write them but is not followed. `Observer` has these members, each called at most once an
/// instruction, in this order. A member that returns false ends the run before the instruction executes.
///
///     bool unreadable(stepper)         there is no instruction, or it cannot be read
///     bool fetched(stepper)            an instruction is about to be executed
///     bool accesses(stepper)           its memory operand (address(), perhaps unknown) is about to be accessed
///     void computes(stepper)           it is no transfer of control and will be executed now
///     void computed(stepper)           and was
///     bool decides(stepper, Truth)     it is a conditional jump, taken or not; unknown ends the run in any case
///     void transfers(stepper)          it is another transfer of control
///     bool goes(stepper, Value)        a transfer that is made leads there; unknown ends the run in any case
///
/// String instructions are not executed: an observer lets pass only those that do nothing (takes_part()).
template <class Memory, class Vectors, class Observer>
class Stepper {
 public:
  Stepper(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window, Memory& memory,
          Vectors& vectors, Observer& observer)
      : emulator_(registers, flags, fs_base),
        window_(window),
        memory_(memory),
        vectors_(vectors),
        observer_(observer),
        at_(registers[Register::rip]) {}

  /// Executes one instruction. False: the run is over.
  bool step() {
    if (!window_.decode(at_, instruction_)) {
      return observer_.unreadable(*this);
    }
    after_ = at_ + instruction_.length;
    if (!observer_.fetched(*this)) {
      return false;
    }
    address_ = {};
    Value memory;
    if (instruction_.has(trait_explicit_access)) {
      if (takes_part()) {
        address_ = emulator_.address(instruction_, after_);
        if (!observer_.accesses(*this)) {
          return false;
        }
      }
      if (loads(instruction_.kind()) && needs_memory(instruction_.operation) && address_.known) {
        memory = memory_.load(address_.bits, instruction_.width);
      }
    }
    return execute(memory);
  }

  [[nodiscard]] const Emulator& emulator() const { return emulator_; }
  [[nodiscard]] const DecodedInstruction& instruction() const { return instruction_; }
  /// The address of the instruction; after a step, of the next one.
  [[nodiscard]] std::uint64_t at() const { return at_; }
  /// The end of the instruction.
  [[nodiscard]] std::uint64_t after() const { return after_; }
  /// The address of its memory operand.
  [[nodiscard]] Value address() const { return address_; }
  /// True if it does anything. A repeated string operation with a count of zero does nothing.
  [[nodiscard]] bool takes_part() const {
    return !instruction_.has(trait_repeat) || emulator_.get(Register::rcx).bits != 0;
  }

 private:
  /// True if its result depends on the value of its memory operand, as one of up to 8 bytes.
  static bool needs_memory(Operation operation) {
    return operation != Operation::other && operation != Operation::vector &&
           operation != Operation::compare_exchange_wide;
  }

  bool execute(Value memory) {
    switch (instruction_.operation) {
      case Operation::jump_if: {
        const Truth taken = emulator_.holds(instruction_.condition);
        if (!observer_.decides(*this, taken) || taken == Truth::unknown) {
          return false;
        }
        if (taken == Truth::yes) {
          return go({after_ + instruction_.immediate_value(), true});
        }
        at_ = after_;
        return true;
      }
      case Operation::jump:
      case Operation::call:
      case Operation::ret:
        return transfer(memory);
      default:
        observer_.computes(*this);
        compute(memory);
        observer_.computed(*this);
        at_ = after_;
        return true;
    }
  }

  void compute(Value memory) {
    switch (instruction_.operation) {
      case Operation::push:
        push(emulator_.fetch(instruction_, instruction_.source, instruction_.size, memory), instruction_.size);
        break;
      case Operation::pop:
        emulator_.receive(instruction_, pop(instruction_.size));
        break;
      case Operation::leave:
        emulator_.set(Register::rsp, emulator_.get(Register::rbp));
        emulator_.set(Register::rbp, pop(8));
        break;
      case Operation::string:
        break;
      case Operation::vector:
        vectors_.execute(instruction_, emulator_, address_, memory_);
        break;
      case Operation::compare_exchange_wide:
        exchange_wide();
        break;
      default: {
        const Value result = emulator_.execute(instruction_, after_, memory);
        if (instruction_.operation == Operation::other) {
          vectors_.passed_by(instruction_);
        }
        if (!instruction_.has(trait_explicit_access) || !stores(instruction_.kind())) {
          break;
        }
        if (address_.known) {
          memory_.store(address_.bits, instruction_.width, result);
        } else {
          memory_.store_anywhere();
        }
      }
    }
  }

  void exchange_wide() {
    const unsigned half = instruction_.width / 2U;
    Value low = address_.known ? memory_.load(address_.bits, half) : Value{};
    Value high = address_.known ? memory_.load(address_.bits + half, half) : Value{};
    emulator_.exchange_wide(half, low, high);
    if (address_.known) {
      memory_.store(address_.bits, half, low);
      memory_.store(address_.bits + half, half, high);
    } else {
      memory_.store_anywhere();
    }
  }

  bool transfer(Value memory) {
    observer_.transfers(*this);
    const bool returns = instruction_.operation == Operation::ret;
    const Value target = returns ? pop(8) : emulator_.target(instruction_, after_, memory);
    if (returns) {
      emulator_.drop_arguments(instruction_);
    }
    if (instruction_.operation == Operation::call) {
      push({after_, true}, 8);
    }
    return go(target);
  }

  bool go(Value target) {
    if (!observer_.goes(*this, target) || !target.known) {
      return false;
    }
    at_ = target.bits;
    return true;
  }

  void push(Value value, unsigned size) {
    Value top = emulator_.get(Register::rsp);
    if (!top.known) {
      memory_.store_anywhere();
      return;
    }
    top.bits -= size;
    emulator_.set(Register::rsp, top);
    memory_.store(top.bits, size, value);
  }

  Value pop(unsigned size) {
    Value top = emulator_.get(Register::rsp);
    if (!top.known) {
      return {};
    }
    const Value value = memory_.load(top.bits, size);
    top.bits += size;
    emulator_.set(Register::rsp, top);
    return value;
  }

  Emulator emulator_;
  CodeWindow& window_;
  Memory& memory_;
  Vectors& vectors_;
  Observer& observer_;
  std::uint64_t at_;
  std::uint64_t after_ = 0;
  Value address_;
  DecodedInstruction instruction_;
};

}  // namespace crosstalk::in_target
