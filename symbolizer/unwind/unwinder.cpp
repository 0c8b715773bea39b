// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/unwind/unwinder.h"

#include <algorithm>
#include <optional>

#include "symbolizer/unwind/expression.h"

namespace crosstalk::symbolizer {
namespace {

constexpr std::uint64_t user_end = 0x0000'8000'0000'0000;  // addresses of user code are below

class Unwinder {
 public:
  Unwinder(const Registers& registers, std::span<const std::uint8_t> stack, std::span<const Mapping> mappings,
           const RulesOf& rules_of)
      : registers_(registers), memory_(registers[Register::rsp], stack), mappings_(mappings), rules_of_(rules_of) {}

  [[nodiscard]] std::uint64_t ip() const { return registers_[Register::rip]; }
  [[nodiscard]] std::uint64_t sp() const { return registers_[Register::rsp]; }
  /// 0: not known.
  [[nodiscard]] std::uint64_t frame_pointer() const { return frame_pointer_known_ ? registers_[Register::rbp] : 0; }
  /// Goes to the caller; false if nothing leads further.
  bool step();

 private:
  enum class Outcome { stepped, ended, unknown };
  [[nodiscard]] const Mapping* mapping_of(std::uint64_t address);
  Outcome step_by_rules(const Mapping& mapping, std::uint64_t lookup);
  bool apply(const FrameRule& rule, std::uint64_t cfa);
  bool step_by_frame_pointer();
  bool step_over_bad_call();

  Registers registers_;
  StackMemory memory_;
  std::span<const Mapping> mappings_;
  const RulesOf& rules_of_;
  const Mapping* last_mapping_ = nullptr;
  bool exact_ip_ = true;  // ip is where execution was, not behind a call
  bool first_ = true;
  bool frame_pointer_known_ = true;
};

const Mapping* Unwinder::mapping_of(std::uint64_t address) {
  const auto holds = [address](const Mapping& mapping) { return mapping.begin <= address && address < mapping.end; };
  if (last_mapping_ == nullptr || !holds(*last_mapping_)) {
    const auto found = std::find_if(mappings_.begin(), mappings_.end(), holds);
    if (found == mappings_.end()) {
      return nullptr;
    }
    last_mapping_ = &*found;
  }
  return last_mapping_;
}

bool Unwinder::step() {
  // After a call that never returns comes another function, or nothing, so look up the call itself.
  const std::uint64_t lookup = exact_ip_ ? ip() : ip() - 1;
  const Mapping* mapping = mapping_of(lookup);
  bool stepped = false;
  if (mapping != nullptr) {
    const Outcome outcome = step_by_rules(*mapping, lookup);
    if (outcome == Outcome::ended) {
      return false;
    }
    stepped = outcome == Outcome::stepped;
  }
  if (!stepped) {
    stepped = step_by_frame_pointer() || (first_ && mapping == nullptr && step_over_bad_call());
    exact_ip_ = false;
  }
  first_ = false;
  return stepped && ip() != 0;
}

Unwinder::Outcome Unwinder::step_by_rules(const Mapping& mapping, std::uint64_t lookup) {
  FrameRules* rules = rules_of_(mapping.module);
  if (rules == nullptr) {
    return Outcome::unknown;
  }
  const FrameRule& rule = rules->at(lookup - mapping.bias);
  if (!rule.known) {
    return Outcome::unknown;
  }
  const auto cfa =
      rule.cfa_expression.empty()
          ? std::optional(registers_.value[rule.cfa_register] + static_cast<std::uint64_t>(rule.cfa_offset))
          : evaluate(rule.cfa_expression, registers_, memory_, std::nullopt);
  // The stack only shrinks on the way out, except from an alternate signal stack.
  if (!cfa || (!rule.signal_frame && *cfa <= registers_[Register::rsp])) {
    return Outcome::ended;
  }
  exact_ip_ = rule.signal_frame;
  return apply(rule, *cfa) ? Outcome::stepped : Outcome::ended;
}

/// Computes the caller's registers; false if its instruction pointer is unknown.
bool Unwinder::apply(const FrameRule& rule, std::uint64_t cfa) {
  using Kind = RegisterRule::Kind;
  Registers caller = registers_;
  caller[Register::rsp] = cfa;
  caller[Register::rip] = 0;
  for (const RegisterRule& reg : rule.registers) {
    std::optional<std::uint64_t> value;
    switch (reg.kind) {
      case Kind::at_cfa:
        value = memory_.read(cfa + static_cast<std::uint64_t>(std::int64_t{reg.offset}));
        break;
      case Kind::cfa_plus:
        value = cfa + static_cast<std::uint64_t>(std::int64_t{reg.offset});
        break;
      case Kind::expression:
        value = evaluate(reg.expression, registers_, memory_, cfa);
        break;
      case Kind::at_expression:
        if (const auto address = evaluate(reg.expression, registers_, memory_, cfa)) {
          value = memory_.read(*address);
        }
        break;
      case Kind::undefined:
        break;
    }
    // A lost register keeps its old value, which nothing may rely on; a lost rip ends the stack.
    if (value) {
      caller.value[reg.reg] = *value;
    }
    if (reg.reg == static_cast<std::size_t>(Register::rbp)) {
      frame_pointer_known_ = value.has_value();
    }
  }
  registers_ = caller;
  return ip() != 0 && ip() < user_end;
}

/// rbp points at the caller's rbp, with the return address above it.
bool Unwinder::step_by_frame_pointer() {
  const std::uint64_t frame = registers_[Register::rbp];
  if (frame < registers_[Register::rsp] || frame % 8 != 0) {
    return false;
  }
  const auto saved = memory_.read(frame);
  const auto return_address = memory_.read(frame + 8);
  if (!saved || !return_address || mapping_of(*return_address) == nullptr) {
    return false;
  }
  registers_[Register::rsp] = frame + 16;
  registers_[Register::rbp] = *saved;
  registers_[Register::rip] = *return_address;
  return true;
}

/// A call through a bad pointer has left the return address on top of the stack.
bool Unwinder::step_over_bad_call() {
  const auto return_address = memory_.read(registers_[Register::rsp]);
  if (!return_address || mapping_of(*return_address) == nullptr) {
    return false;
  }
  registers_[Register::rip] = *return_address;
  registers_[Register::rsp] += 8;
  return true;
}

}  // namespace

std::vector<StackFrame> unwind_stack(const Registers& registers, std::span<const std::uint8_t> stack,
                                     std::span<const Mapping> mappings, std::size_t max_frames,
                                     const RulesOf& rules_of) {
  std::vector<StackFrame> frames;
  if (max_frames == 0) {
    return frames;
  }
  Unwinder unwinder(registers, stack, mappings, rules_of);
  do {
    if (!frames.empty() && unwinder.sp() > frames.back().sp) {
      frames.back().end = unwinder.sp();
    }
    frames.push_back({unwinder.ip(), unwinder.sp(), 0, unwinder.frame_pointer()});
  } while (frames.size() < max_frames && unwinder.step());
  return frames;
}

}  // namespace crosstalk::symbolizer
