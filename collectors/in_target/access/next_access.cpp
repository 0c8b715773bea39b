// SPDX-License-Identifier: Apache-2.0
// The next access: interpretation from the interrupted instruction on.
#include "collectors/in_target/access/code.h"
#include "collectors/in_target/access/emulator.h"
#include "collectors/in_target/access/finder.h"
#include "collectors/in_target/access/memory.h"
#include "collectors/in_target/access/route.h"
#include "collectors/in_target/access/spill.h"

namespace crosstalk::in_target {

namespace {

constexpr unsigned max_instructions = 64;

enum class Step : std::uint8_t { on, found, stop };

bool may_write_flags(Operation operation) {
  switch (operation) {
    case Operation::nop:
    case Operation::move:
    case Operation::move_signed:
    case Operation::exchange:
    case Operation::lea:
    case Operation::bit_not:
    case Operation::byte_swap:
    case Operation::sign_fill:
    case Operation::set_if:
    case Operation::move_if:
    case Operation::push:
    case Operation::leave:
      return false;
    default:
      return true;
  }
}

class Interpreter {
 public:
  Interpreter(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window,
              const CodeReader& reader, Route& route)
      : emulator_(registers, flags, fs_base),
        registers_(registers),
        fs_base_(fs_base),
        memory_(reader),
        window_(window),
        route_(route),
        at_(registers[Register::rip]),
        stack_(registers[Register::rsp]) {}

  bool run(FoundAccess& out);

 private:
  Step step(FoundAccess& out);
  Step access(FoundAccess& out);
  Step jump(std::uint64_t target);
  Step transfer(Value memory);
  Step advance(Value memory);
  bool takes_part() const;
  void push(Value value, unsigned size);
  Value pop(unsigned size);
  bool term(Place place, Term& out) const;
  void note_flags();
  void note_turn(Truth taken);

  Emulator emulator_;
  Provenance provenance_;  // beside it
  const Registers& registers_;
  std::uint64_t fs_base_;
  InterpretedMemory memory_;
  CodeWindow& window_;
  Route& route_;
  Turn flags_tell_;  // where flags_written_
  bool flags_written_ = false;
  std::uint64_t at_;
  std::uint64_t stack_;  // rsp at the start
  std::uint64_t after_ = 0;
  std::uint64_t lap_ = 0;  // where the latest jump back has led to; 0: none yet
  Value address_;          // of the memory operand
  DecodedInstruction instruction_;
  FoundAccess spill_;  // the first one met
};

bool Interpreter::run(FoundAccess& out) {
  for (unsigned i = 0; i < max_instructions; ++i) {
    const Step next = step(out);
    if (next == Step::found) {
      return true;
    }
    if (next == Step::stop) {
      break;
    }
  }
  if (spill_.kind == AccessKind::none) {
    return false;
  }
  out = spill_;
  return true;
}

/// Whether a string operation does anything: a repeated one with a count of zero does not.
bool Interpreter::takes_part() const {
  return !instruction_.has(trait_repeat) || emulator_.get(Register::rcx).bits != 0;
}

Step Interpreter::step(FoundAccess& out) {
  if (!window_.decode(at_, instruction_)) {
    route_.depends();  // on what can be read
    return Step::stop;
  }
  after_ = at_ + instruction_.length;
  route_.passes(at_, after_);
  if (instruction_.operation == Operation::stop) {
    return Step::stop;
  }
  address_ = {};
  Value memory;
  if (instruction_.has(trait_explicit_access)) {
    if (instruction_.operation == Operation::string && instruction_.has(trait_repeat) &&
        !emulator_.get(Register::rcx).known) {
      return Step::stop;
    }
    if (instruction_.operation == Operation::string && instruction_.has(trait_repeat)) {
      route_.depends();  // on the count
    }
    if (takes_part()) {
      const Step seen = access(out);
      if (seen != Step::on) {
        return seen;
      }
    }
    if (loads(instruction_.kind()) && instruction_.operation != Operation::other && address_.known) {
      memory = memory_.load(address_.bits, instruction_.width);
    }
  }
  return advance(memory);
}

/// Is the memory operand the answer? `on`: a spill or a jump's target, that has been taken note of.
Step Interpreter::access(FoundAccess& out) {
  address_ = emulator_.address(instruction_, after_);
  const bool spill = is_spill(instruction_, address_, stack_);
  if (!spill && is_fixed_jump(instruction_)) {
    return address_.known ? Step::on : Step::stop;
  }
  if (!address_.known) {
    route_.depends();  // on what could not be loaded
  }
  if (!spill && !address_.known) {
    return Step::stop;
  }
  FoundAccess found{
      at_, address_.bits, instruction_.width, instruction_.kind(), profile::AddressFrom::next, spill, false, {}};
  if (address_.known) {
    found.form = provenance_.form(instruction_, address_.bits, registers_, fs_base_);
  }
  if (!spill) {
    out = found;
    return Step::found;
  }
  if (instruction_.operation == Operation::string) {
    return Step::stop;  // based on rsp or rbp it can not be
  }
  if (spill_.kind == AccessKind::none) {
    if (!address_.known) {
      return Step::stop;
    }
    spill_ = found;
  }
  return Step::on;
}

void Interpreter::push(Value value, unsigned size) {
  Value top = emulator_.get(Register::rsp);
  if (!top.known) {
    memory_.store_anywhere();
    return;
  }
  top.bits -= size;
  emulator_.set(Register::rsp, top);
  memory_.store(top.bits, size, value);
}

Value Interpreter::pop(unsigned size) {
  Value top = emulator_.get(Register::rsp);
  if (!top.known) {
    return {};
  }
  const Value value = memory_.load(top.bits, size);
  top.bits += size;
  emulator_.set(Register::rsp, top);
  return value;
}

Step Interpreter::advance(Value memory) {
  switch (instruction_.operation) {
    case Operation::jump_if: {
      const Truth taken = emulator_.holds(instruction_.condition);
      note_turn(taken);
      if (taken == Truth::unknown) {
        return Step::stop;
      }
      return jump(taken == Truth::yes ? after_ + instruction_.immediate_value() : after_);
    }
    case Operation::jump:
    case Operation::call:
    case Operation::ret:
      return transfer(memory);
    case Operation::push:
      push(emulator_.fetch(instruction_, instruction_.source, instruction_.size, memory), instruction_.size);
      break;
    case Operation::pop:
      emulator_.receive(instruction_, pop(instruction_.size));
      if (instruction_.has(trait_writes_flags)) {
        flags_written_ = true;
        flags_tell_ = {};
      }
      break;
    case Operation::leave:
      emulator_.set(Register::rsp, emulator_.get(Register::rbp));
      emulator_.set(Register::rbp, pop(8));
      break;
    case Operation::string:  // not executed: its count is zero
      break;
    default: {
      note_flags();
      const Value result = emulator_.execute(instruction_, after_, memory);
      if (instruction_.has(trait_explicit_access) && stores(instruction_.kind())) {
        if (address_.known) {
          memory_.store(address_.bits, instruction_.width, result);
        } else {
          memory_.store_anywhere();
        }
      }
    }
  }
  provenance_.advance(instruction_);
  at_ = after_;
  return Step::on;
}

/// A register or an immediate, as the interrupted thread's register plus a constant. False: it is none.
bool Interpreter::term(Place place, Term& out) const {
  if (place == Place::immediate) {
    out = {RegisterForm::constant, instruction_.immediate_value()};
    return true;
  }
  if (!is_register(place)) {
    return false;
  }
  const std::uint8_t from = provenance_.of(static_cast<std::uint8_t>(place));
  const Value value = emulator_.get(place, 8);
  out = {from, value.bits - register_or_zero(registers_, from)};
  return value.known && from != RegisterForm::mixed;
}

/// Before an instruction is executed: what its flags will tell of.
void Interpreter::note_flags() {
  const Operation operation = instruction_.operation;
  if (!may_write_flags(operation)) {
    return;
  }
  flags_written_ = true;
  Turn turn;
  if (operation == Operation::compare || operation == Operation::subtract) {
    turn.of = Turn::Of::difference;
  } else if (operation == Operation::test || operation == Operation::bit_and) {
    turn.of = Turn::Of::conjunction;
  }
  turn.size = instruction_.size;
  const bool told = term(instruction_.destination, turn.left) && term(instruction_.source, turn.right);
  flags_tell_ = told ? turn : Turn{};
}

/// A conditional jump: by the interrupted thread's flags, or by others that what was interpreted has set.
void Interpreter::note_turn(Truth taken) {
  if (!flags_written_) {
    route_.depends_on_flags();
    if (tests_parity(instruction_.condition)) {
      route_.depends();
    }
    return;
  }
  Turn turn = flags_tell_;
  turn.condition = instruction_.condition;
  turn.taken = taken == Truth::yes;
  if (taken == Truth::unknown) {
    route_.depends();
  } else {
    route_.depends_on(turn);
  }
}

Step Interpreter::transfer(Value memory) {
  if (instruction_.source != Place::immediate || instruction_.operation == Operation::ret) {
    route_.depends();  // on where it leads to
  }
  provenance_.advance(instruction_);
  const bool returns = instruction_.operation == Operation::ret;
  const Value target = returns ? pop(8) : emulator_.target(instruction_, after_, memory);
  if (returns) {
    emulator_.drop_arguments(instruction_);
  }
  if (instruction_.operation == Operation::call) {
    push({after_, true}, 8);
  }
  if (!target.known) {
    return Step::stop;
  }
  if (instruction_.operation == Operation::jump && instruction_.source == Place::immediate) {
    return jump(target.bits);
  }
  at_ = target.bits;
  return Step::on;
}

/// A loop that goes round without an access has none to tell of: its next is as many rounds away as it has.
Step Interpreter::jump(std::uint64_t target) {
  if (target <= at_) {
    if (target == lap_) {
      return Step::stop;
    }
    lap_ = target;
  }
  at_ = target;
  return Step::on;
}

}  // namespace

bool AccessFinder::next(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window,
                        const CodeReader& reader, FoundAccess& out, Route& route) {
  return Interpreter(registers, flags, fs_base, window, reader, route).run(out);
}

}  // namespace crosstalk::in_target
