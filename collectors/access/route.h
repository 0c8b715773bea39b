// SPDX-License-Identifier: Apache-2.0
// How the finder came by an answer: which code it rests on, and what of the registers and flags decided on the way.
#pragma once

#include <array>
#include <cstdint>

#include "base/registers.h"
#include "collectors/access/emulator.h"
#include "collectors/access/provenance.h"

namespace crosstalk::in_target {

/// A register of the interrupted thread, or 0, plus a constant.
struct Term {
  std::uint8_t from = RegisterForm::constant;
  std::uint64_t plus = 0;
  [[nodiscard]] std::uint64_t of(const Registers& registers) const { return register_or_zero(registers, from) + plus; }
  bool operator==(const Term&) const = default;
};

/// The cached answer is valid only if `left != right`: this inequality ruled out another path to the instruction. The
/// default guard always holds.
struct Guard {
  Term left{RegisterForm::constant, 1};
  Term right;
  [[nodiscard]] bool holds(const Registers& registers) const { return left.of(registers) != right.of(registers); }
  bool operator==(const Guard&) const = default;
};

/// The comparison that a conditional jump on the path used: flags of left - right, or of left & right.
struct Turn {
  enum class Of : std::uint8_t { nothing, difference, conjunction };
  Of of = Of::nothing;
  std::uint8_t size = 8;  ///< bytes: 1, 2, 4, 8
  std::uint8_t condition = 0;
  bool taken = false;
  Term left, right;

  /// True if the jump goes the same way with these registers.
  [[nodiscard]] bool holds(const Registers& registers) const;
};

class Route {
 public:
  static constexpr std::size_t most_turns = 2;

  explicit Route(std::uint64_t ip) : ip_(ip), low_(ip), high_(ip) {}
  /// The answer depends on values in a way that guards cannot express.
  void depends() { fixed_ = false; }
  void depends_on(const Guard& guard);
  void depends_on(const Turn& turn);
  /// It depends on the interrupted thread's flags.
  void depends_on_flags() { flags_ = true; }
  /// It rests on the instruction at [begin, end).
  void passes(std::uint64_t begin, std::uint64_t end);

  [[nodiscard]] bool fixed() const { return fixed_; }
  [[nodiscard]] bool by_flags() const { return flags_; }
  [[nodiscard]] const Guard& guard() const { return guard_; }
  [[nodiscard]] const std::array<Turn, most_turns>& turns() const { return turns_; }
  [[nodiscard]] std::uint64_t ip() const { return ip_; }
  [[nodiscard]] std::uint64_t low() const { return low_; }
  [[nodiscard]] std::uint64_t high() const { return high_; }

 private:
  std::uint64_t ip_;
  std::uint64_t low_;
  std::uint64_t high_;  // [low_, high_): code
  Guard guard_;
  std::array<Turn, most_turns> turns_;
  std::size_t turn_count_ = 0;
  bool fixed_ = true;
  bool flags_ = false;
};

}  // namespace crosstalk::in_target
