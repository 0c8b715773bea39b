// SPDX-License-Identifier: Apache-2.0
// Finds the retired access: steps back from the interrupted instruction, and undoes each instruction's changes of
// registers if possible. Each step back is executed forward again: a path whose results differ from the registers or
// flags found was not taken. If several paths are left and the code is a loop, the path of its next round decides.
#include <array>
#include <utility>

#include "collectors/access/code.h"
#include "collectors/access/emulator.h"
#include "collectors/access/finder.h"
#include "collectors/access/predecessors.h"
#include "collectors/access/round.h"
#include "collectors/access/route.h"
#include "collectors/access/spill.h"

namespace crosstalk::in_target {

namespace {

constexpr unsigned max_steps = Round::most;
constexpr unsigned max_steps_above = 5;
constexpr std::uint8_t least_confidence = 190;  // of 255, in the start of the instruction that lies before

Value operator+(Value a, std::uint64_t b) { return {a.bits + b, a.known}; }

/// Computes the state before an instruction from the state after it. Registers that cannot be recovered are unknown.
class Undo {
 public:
  Undo(const DecodedInstruction& instruction, const Emulator& after, Emulator& before)
      : instruction_(instruction), after_(after), before_(before) {
    before_.forget(instruction.clobbers);
    if (instruction.has(trait_writes_flags)) {
      before_.forget_flags();
    }
    switch (instruction.operation) {
      case Operation::add:
      case Operation::subtract:
      case Operation::increment:
      case Operation::decrement:
        undo_sum();
        break;
      case Operation::lea:
        undo_lea();
        break;
      case Operation::move:
        recover_source();
        break;
      case Operation::exchange:
        if (instruction.size == 8 && is_register(instruction.source) && is_register(instruction.destination)) {
          before_.set(instruction.source, 8, after_.get(instruction.destination, 8));
          before_.set(instruction.destination, 8, after_.get(instruction.source, 8));
        }
        break;
      case Operation::push:
        before_.set(Register::rsp, after_.get(Register::rsp) + instruction.size);
        break;
      case Operation::call:
        before_.set(Register::rsp, after_.get(Register::rsp) + sizeof(std::uint64_t));
        break;
      case Operation::ret:
        before_.set(Register::rsp, after_.get(Register::rsp) +
                                       (std::uint64_t{0} - sizeof(std::uint64_t) - instruction.dropped_arguments()));
        break;
      case Operation::pop:
        if (instruction.destination != place_of(Register::rsp)) {
          before_.set(Register::rsp, after_.get(Register::rsp) + (std::uint64_t{0} - instruction.size));
        }
        if (instruction.has(trait_writes_flags)) {
          before_.forget_direction();
        }
        break;
      case Operation::string:
        undo_string();
        break;
      case Operation::clear_direction:
      case Operation::set_direction:
        before_.forget_direction();
        break;
      default:
        break;
    }
  }

 private:
  void undo_sum();
  void undo_lea();
  void recover_source();
  void undo_string();

  const DecodedInstruction& instruction_;
  const Emulator& after_;
  Emulator& before_;
};

void Undo::undo_sum() {
  if (instruction_.size != 8 || !is_register(instruction_.destination)) {
    return;
  }
  Value term{1, true};
  if (instruction_.operation == Operation::add || instruction_.operation == Operation::subtract) {
    if (instruction_.source == Place::immediate) {
      term.bits = instruction_.immediate_value();
    } else if (instruction_.source != instruction_.destination) {
      term = after_.get(instruction_.source, 8);
    } else {
      return;
    }
  }
  const bool added = instruction_.operation == Operation::add || instruction_.operation == Operation::increment;
  const Value result = after_.get(instruction_.destination, 8);
  if (term.known && result.known) {
    before_.set(instruction_.destination, 8, {added ? result.bits - term.bits : result.bits + term.bits, true});
  }
}

/// lea r, [r + index * scale + displacement], or r as an unscaled index.
void Undo::undo_lea() {
  const auto r = static_cast<std::uint8_t>(instruction_.destination);
  if (instruction_.size != 8 || instruction_.has(trait_address32) || instruction_.has(trait_fs)) {
    return;
  }
  DecodedInstruction rest = instruction_;
  if (instruction_.base == r && instruction_.index != r) {
    rest.base = no_register;
  } else if (instruction_.index == r && instruction_.base != r && instruction_.scale() == 1) {
    rest.index = no_register;
  } else {
    return;
  }
  const Value offset = before_.address(rest, 0);
  const Value result = after_.get(instruction_.destination, 8);
  if (rest.base != rip_register && offset.known && result.known) {
    before_.set(instruction_.destination, 8, {result.bits - offset.bits, true});
  }
}

/// A copy tells what its source was, if that has been lost since.
void Undo::recover_source() {
  if (instruction_.size == 8 && instruction_.source_size == 8 && is_register(instruction_.source) &&
      is_register(instruction_.destination) && instruction_.source != instruction_.destination &&
      !before_.get(instruction_.source, 8).known) {
    before_.set(instruction_.source, 8, after_.get(instruction_.destination, 8));
  }
}

/// Back by one element; after a repeated operation that is the last element.
void Undo::undo_string() {
  const Truth down = after_.runs_down();
  if (down == Truth::unknown) {
    return;
  }
  const std::uint64_t back = down == Truth::yes ? instruction_.width : std::uint64_t{0} - instruction_.width;
  if (instruction_.has(trait_writes_rdi)) {
    before_.set(Register::rdi, after_.get(Register::rdi) + back);
  }
  if (instruction_.has(trait_writes_rsi)) {
    before_.set(Register::rsi, after_.get(Register::rsi) + back);
  }
}

class Retracer {
 public:
  Retracer(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window,
           const CodeReader& reader, Route& route)
      : emulator_(registers, flags, fs_base),
        registers_(registers),
        flags_(flags),
        fs_base_(fs_base),
        window_(window),
        reader_(reader),
        route_(route),
        at_(registers[Register::rip]),
        stack_(registers[Register::rsp]) {}

  bool run(FoundAccess& out);

 private:
  enum class Verdict : std::uint8_t { on, found, stop };
  bool step_back();
  bool step_back_the_only_way();
  bool step_back_by_round();
  bool may_come_from_above();
  bool may_come_by(std::uint64_t jump);
  template <typename FirstStep>
  bool may_have_come(FirstStep first_step);
  bool may_have_passed(std::uint64_t end, bool& only_padding, bool& more);
  static bool sure(const Predecessors& candidates);
  bool try_from(std::uint64_t from, bool by_jump);
  bool undo_from(std::uint64_t from);
  void note_contradiction(const Emulator& predicted);
  bool arrives(std::uint64_t from, bool by_jump);
  Truth holds(std::uint8_t condition);
  Verdict look(FoundAccess& out);

  Emulator emulator_;      // before the instruction at at_
  Provenance provenance_;  // the same
  const Registers& registers_;
  std::uint64_t flags_;
  std::uint64_t fs_base_;
  CodeWindow& window_;
  const CodeReader& reader_;
  Route& route_;
  std::uint64_t at_;
  std::uint64_t stack_;
  DecodedInstruction instruction_;
  std::array<std::uint64_t, max_steps> steps_{};  // instructions that were stepped back to
  unsigned step_count_ = 0;
  Round round_;  // empty: not sought yet, or not known
  bool sought_round_ = false;
  bool has_spill_ = false;
  bool above_ = false;     // it is asked whether execution may have come from above
  bool compared_ = false;  // and values had a say in it
};

bool Retracer::run(FoundAccess& out) {
  FoundAccess found;
  for (unsigned i = 0; i < max_steps && step_back(); ++i) {
    const Verdict verdict = look(found);
    if (verdict == Verdict::found) {
      out = found;
      return true;
    }
    if (verdict == Verdict::stop) {
      break;
    }
  }
  if (has_spill_) {
    out = found;
  }
  return has_spill_;
}

/// To the instruction executed before. False: it is not known.
bool Retracer::step_back() {
  if (!step_back_the_only_way() && !step_back_by_round()) {
    return false;
  }
  steps_[step_count_++] = at_;
  return true;
}

/// To the instruction executed before, if there is only one way by which execution can have come.
bool Retracer::step_back_the_only_way() {
  const Predecessors candidates = find_predecessors(window_, at_);
  std::uint64_t jump = 0;
  unsigned jumps = 0;
  for (std::size_t i = 0; i < candidates.jumps; ++i) {
    const std::uint64_t from = at_ + static_cast<std::uint64_t>(std::int64_t{candidates.jump[i]});
    if (window_.decode(from, instruction_) && arrives(from, true)) {
      jump = from;
      ++jumps;
    }
  }
  if (jumps == 0) {
    return sure(candidates) && try_from(at_ - candidates.distance, false);
  }
  if (jumps != 1) {
    return false;
  }
  if (!may_come_from_above()) {
    return try_from(jump, true);
  }
  return sure(candidates) && !may_come_by(jump) && try_from(at_ - candidates.distance, false);
}

/// To the instruction by which a loop's next round comes here: most rounds take the path of the one before.
[[gnu::noinline]] bool Retracer::step_back_by_round() {
  if (!std::exchange(sought_round_, true) && find_round(registers_, flags_, fs_base_, window_, reader_, round_)) {
    route_.depends();  // on the memory that decides the path
  }
  if (step_count_ >= round_.length) {
    return false;
  }
  for (unsigned i = 0; i < step_count_; ++i) {
    if (steps_[i] != round_.last[i]) {
      return false;
    }
  }
  const std::uint64_t from = round_.last[step_count_];
  return window_.decode(from, instruction_) && undo_from(from);
}

bool Retracer::sure(const Predecessors& candidates) {
  return candidates.distance != 0 && candidates.confidence >= least_confidence;
}

/// True if execution may have come to at_ by a path that ends with `first_step` and fell through before: none of a few
/// instructions contradicts the registers. (The instruction above a loop often sets its counter.)
template <typename FirstStep>
bool Retracer::may_have_come(FirstStep first_step) {
  const Emulator machine = emulator_;
  const Provenance provenance = provenance_;
  const std::uint64_t at = at_;
  above_ = true;
  compared_ = false;
  bool only_padding = true;
  bool more = true;
  bool may = first_step(only_padding, more);
  for (unsigned i = 1; i < max_steps_above && may && more; ++i) {
    may = may_have_passed(at, only_padding, more);
  }
  emulator_ = machine;
  provenance_ = provenance;
  at_ = at;
  above_ = false;
  if (may && compared_) {
    route_.depends();
  }
  return may;
}

/// Goes one step further up on the way to `end`. Sets `more` if there is another step above. Stops at a jump that joins
/// the path, as nothing above it can contradict the path.
bool Retracer::may_have_passed(std::uint64_t end, bool& only_padding, bool& more) {
  const Predecessors candidates = find_predecessors(window_, at_);
  if (candidates.jumps != 0 && at_ != end) {
    more = false;
    return true;
  }
  more = sure(candidates) && window_.decode(at_ - candidates.distance, instruction_);
  const Operation operation = instruction_.operation;
  if (!more || operation == Operation::call || operation == Operation::stop) {
    more = false;
    return true;
  }
  if (operation == Operation::jump || operation == Operation::ret) {
    more = false;
    return !only_padding;  // else a jump may lead to the code behind
  }
  only_padding = only_padding && operation == Operation::nop;
  return try_from(at_ - candidates.distance, false);
}

[[gnu::noinline]] bool Retracer::may_come_from_above() {
  return may_have_come(
      [this, end = at_](bool& only_padding, bool& more) { return may_have_passed(end, only_padding, more); });
}

[[gnu::noinline]] bool Retracer::may_come_by(std::uint64_t jump) {
  return may_have_come([this, jump](bool& only_padding, bool& /*more*/) {
    only_padding = false;
    return try_from(jump, true);
  });
}

/// Evaluates a condition on the emulator's flags, which equal those of the interrupted thread where they are known.
Truth Retracer::holds(std::uint8_t condition) {
  const Truth truth = emulator_.holds(condition);
  if (truth != Truth::unknown) {
    route_.depends_on_flags();
    if (tests_parity(condition)) {
      route_.depends();
    }
  }
  return truth;
}

/// True if the instruction at `from` can be followed by the one at at_, as far as the flags tell.
bool Retracer::arrives(std::uint64_t from, bool by_jump) {
  const std::uint64_t after = from + instruction_.length;
  if (by_jump) {
    if (after + instruction_.immediate_value() != at_) {
      return false;
    }
    if (instruction_.operation == Operation::jump_if) {
      return holds(instruction_.condition) != Truth::no;
    }
    return instruction_.operation == Operation::jump && instruction_.source == Place::immediate;
  }
  switch (instruction_.operation) {
    case Operation::jump_if:
      return after == at_ && holds(instruction_.condition) != Truth::yes;
    case Operation::jump:
    case Operation::call:
    case Operation::ret:
    case Operation::stop:
      return false;
    default:
      return after == at_;
  }
}

bool Retracer::try_from(std::uint64_t from, bool by_jump) {
  return window_.decode(from, instruction_) && arrives(from, by_jump) && undo_from(from);
}

/// Apart from try_from, so that its machines are not on the stack while instructions are decoded.
[[gnu::noinline]] bool Retracer::undo_from(std::uint64_t from) {
  Emulator before = emulator_;
  const Undo undo(instruction_, emulator_, before);
  route_.passes(from, from + instruction_.length);
  if (instruction_.operation == Operation::string) {
    const Value count = emulator_.get(Register::rcx);
    const bool copies = !instruction_.has(trait_writes_flags);
    if (instruction_.has(trait_repeat) && copies && count.known && count.bits != 0) {
      route_.depends();
      return false;  // it would not have ended
    }
    compared_ = compared_ || (instruction_.has(trait_repeat) && count.known);
  } else if (!uses_stack(instruction_.operation)) {
    Emulator again = before;
    again.execute(instruction_, from + instruction_.length, {});
    if (!again.agrees_with(emulator_)) {
      note_contradiction(again);
      return false;
    }
    compared_ = compared_ || again.comparable(emulator_, before);
  }
  emulator_ = before;
  provenance_.go_back(instruction_);
  at_ = from;
  return true;
}

/// Notes that execution did not come by `instruction_`, because its destination does not hold the value that it would
/// have left. A guard can check this again if it can express that value.
void Retracer::note_contradiction(const Emulator& predicted) {
  if (!above_ || !is_register(instruction_.destination)) {
    route_.depends();
    return;
  }
  const auto r = static_cast<std::uint8_t>(instruction_.destination);
  const Value left = predicted.get(instruction_.destination, 8);
  const Value found = emulator_.get(instruction_.destination, 8);
  Provenance before = provenance_;
  before.go_back(instruction_);
  before.advance(instruction_);
  const std::uint8_t left_from = before.of(r);
  const std::uint8_t found_from = provenance_.of(r);
  if (!left.known || !found.known || left.bits == found.bits || left_from == RegisterForm::mixed ||
      found_from == RegisterForm::mixed || (left_from == found_from && left_from != RegisterForm::constant)) {
    route_.depends();
    return;
  }
  route_.depends_on(Guard{{left_from, left.bits - register_or_zero(registers_, left_from)},
                          {found_from, found.bits - register_or_zero(registers_, found_from)}});
}

/// Determines if the instruction stepped back to accesses memory, and its address.
Retracer::Verdict Retracer::look(FoundAccess& out) {
  if (!instruction_.has(trait_explicit_access)) {
    return Verdict::on;
  }
  const Value address = emulator_.address(instruction_, at_ + instruction_.length);
  const bool spill = is_passed_by(instruction_, address, emulator_.get(Register::rsp), stack_, route_);
  if (!address.known) {
    return spill ? Verdict::on : Verdict::stop;
  }
  FoundAccess found{
      at_, address.bits, instruction_.width, instruction_.kind(), profile::AddressFrom::retired, spill, false, {}};
  found.form = provenance_.form(instruction_, address.bits, registers_, fs_base_);
  if (!spill) {
    out = found;
    return Verdict::found;
  }
  if (!has_spill_) {
    out = found;
    has_spill_ = true;
  }
  return Verdict::on;
}

}  // namespace

bool AccessFinder::retired(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base, CodeWindow& window,
                           const CodeReader& reader, FoundAccess& out, Route& route) {
  return Retracer(registers, flags, fs_base, window, reader, route).run(out);
}

}  // namespace crosstalk::in_target
