// SPDX-License-Identifier: Apache-2.0
// The next access: the instructions from the interrupted one on are executed ahead until one of them is the answer.
#include "collectors/access/code.h"
#include "collectors/access/emulator.h"
#include "collectors/access/finder.h"
#include "collectors/access/memory.h"
#include "collectors/access/route.h"
#include "collectors/access/spill.h"
#include "collectors/access/stepper.h"

namespace crosstalk::in_target {

namespace {

constexpr unsigned max_instructions = 64;

bool may_write_flags(const DecodedInstruction& instruction) {
  switch (instruction.operation) {
    case Operation::pop:
      return instruction.has(trait_writes_flags);
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
    case Operation::string:  // one that is passed does nothing
      return false;
    default:
      return true;
  }
}

/// Watches for an access, and notes the dependences of the path to it.
class NextAccessSearch {
 public:
  using Run = Stepper<InterpretedMemory, NoVectors, NextAccessSearch>;

  NextAccessSearch(const Registers& registers, std::uint64_t fs_base, Route& route)
      : registers_(registers), fs_base_(fs_base), route_(route), stack_(registers[Register::rsp]) {}

  /// Called after the run: sets `out` to the access that was found, else the first spill that was met. False: neither.
  [[nodiscard]] bool answer(FoundAccess& out) const {
    if (!found_ && spill_.kind == AccessKind::none) {
      return false;
    }
    out = found_ ? access_ : spill_;
    return true;
  }

  bool unreadable(const Run& run);
  bool fetched(const Run& run);
  bool accesses(const Run& run);
  void computes(const Run& run);
  void computed(const Run& run) { provenance_.advance(run.instruction()); }
  bool decides(const Run& run, Truth taken);
  void transfers(const Run& run);
  bool goes(const Run& run, Value target);

 private:
  [[nodiscard]] bool term(const Run& run, Place place, Term& out) const;
  bool pass_spill(const Run& run, const FoundAccess& spill);

  Provenance provenance_;  // beside the emulator
  const Registers& registers_;
  std::uint64_t fs_base_;
  Route& route_;
  Turn flags_tell_;  // if flags_written_
  bool flags_written_ = false;
  std::uint64_t stack_;    // rsp at the start
  std::uint64_t lap_ = 0;  // the target of the latest jump back; 0: none yet
  bool found_ = false;
  FoundAccess access_;  // if found_
  FoundAccess spill_;   // the first one met
};

bool NextAccessSearch::unreadable(const Run& /*run*/) {
  route_.depends();  // on the readable bytes
  return false;
}

bool NextAccessSearch::fetched(const Run& run) {
  const DecodedInstruction& instruction = run.instruction();
  route_.passes(run.at(), run.after());
  if (instruction.operation == Operation::stop) {
    return false;
  }
  if (instruction.operation == Operation::string && instruction.has(trait_repeat)) {
    if (!run.emulator().get(Register::rcx).known) {
      return false;
    }
    route_.depends();  // on the count
  }
  return true;
}

/// True if the memory operand is the answer. The search goes on past a spill and a jump's target.
bool NextAccessSearch::accesses(const Run& run) {
  const DecodedInstruction& instruction = run.instruction();
  const Value address = run.address();
  const bool spill = is_passed_by(instruction, address, run.emulator().get(Register::rsp), stack_, route_);
  if (!spill && is_fixed_jump(instruction)) {
    return address.known;
  }
  if (!address.known) {
    route_.depends();  // on what could not be loaded
  }
  if (!spill && !address.known) {
    return false;
  }
  FoundAccess access{
      run.at(), address.bits, instruction.width, instruction.kind(), profile::AddressFrom::next, spill, false, {}};
  if (address.known) {
    access.form = provenance_.form(instruction, address.bits, registers_, fs_base_);
  }
  if (!spill) {
    access_ = access;
    found_ = true;
    return false;
  }
  return pass_spill(run, access);
}

bool NextAccessSearch::pass_spill(const Run& run, const FoundAccess& spill) {
  if (run.instruction().operation == Operation::string) {
    return false;  // based on rsp or rbp it cannot be
  }
  if (spill_.kind == AccessKind::none) {
    if (!run.address().known) {
      return false;
    }
    spill_ = spill;
  }
  return true;
}

/// A register or an immediate, as the interrupted thread's register plus a constant. False: it is none.
bool NextAccessSearch::term(const Run& run, Place place, Term& out) const {
  if (place == Place::immediate) {
    out = {RegisterForm::constant, run.instruction().immediate_value()};
    return true;
  }
  if (!is_register(place)) {
    return false;
  }
  const std::uint8_t from = provenance_.of(static_cast<std::uint8_t>(place));
  const Value value = run.emulator().get(place, 8);
  out = {from, value.bits - register_or_zero(registers_, from)};
  return value.known && from != RegisterForm::mixed;
}

/// Remembers which comparison the flags will come from.
void NextAccessSearch::computes(const Run& run) {
  const DecodedInstruction& instruction = run.instruction();
  if (!may_write_flags(instruction)) {
    return;
  }
  flags_written_ = true;
  Turn turn;
  if (instruction.operation == Operation::compare || instruction.operation == Operation::subtract) {
    turn.of = Turn::Of::difference;
  } else if (instruction.operation == Operation::test || instruction.operation == Operation::bit_and) {
    turn.of = Turn::Of::conjunction;
  } else {
    flags_tell_ = {};
    return;
  }
  turn.size = instruction.size;
  const bool told = term(run, instruction.destination, turn.left) && term(run, instruction.source, turn.right);
  flags_tell_ = told ? turn : Turn{};
}

/// A conditional jump: by the interrupted thread's flags, or by others that an instruction on the way has set.
bool NextAccessSearch::decides(const Run& run, Truth taken) {
  const std::uint8_t condition = run.instruction().condition;
  if (!flags_written_) {
    route_.depends_on_flags();
    if (tests_parity(condition)) {
      route_.depends();
    }
    return true;
  }
  Turn turn = flags_tell_;
  turn.condition = condition;
  turn.taken = taken == Truth::yes;
  if (taken == Truth::unknown) {
    route_.depends();
  } else {
    route_.depends_on(turn);
  }
  return true;
}

void NextAccessSearch::transfers(const Run& run) {
  const DecodedInstruction& instruction = run.instruction();
  if (instruction.source != Place::immediate || instruction.operation == Operation::ret) {
    route_.depends();  // on its target
  }
  provenance_.advance(instruction);
}

/// A loop that goes round without an access ends the search: its next access is as many rounds away as the loop has.
bool NextAccessSearch::goes(const Run& run, Value target) {
  const DecodedInstruction& instruction = run.instruction();
  const bool within_function = instruction.operation == Operation::jump_if ||
                               (instruction.operation == Operation::jump && instruction.source == Place::immediate);
  if (!within_function || target.bits > run.at()) {
    return true;
  }
  const bool again = target.bits == lap_;
  lap_ = target.bits;
  return !again;
}

}  // namespace

bool AccessFinder::next(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window,
                        const CodeReader& reader, FoundAccess& out, Route& route) {
  NextAccessSearch search(registers, fs_base, route);
  InterpretedMemory memory(reader);
  NoVectors no_vectors;
  NextAccessSearch::Run run(registers, flags, fs_base, window, memory, no_vectors, search);
  for (unsigned i = 0; i < max_instructions && run.step(); ++i) {
  }
  return search.answer(out);
}

}  // namespace crosstalk::in_target
