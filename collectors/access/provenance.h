// SPDX-License-Identifier: Apache-2.0
// Follows the origins of register values while code is retraced or interpreted: some are a register of the interrupted
// thread plus a constant.
#pragma once

#include <array>
#include <cstdint>

#include "base/registers.h"
#include "collectors/access/decoded_instruction.h"
#include "collectors/access/emulator.h"

namespace crosstalk::in_target {

/// An address, or any value, as a sum of the interrupted thread's registers: base + index * 2^shift + offset
/// [+ the fs base]. Registers in DWARF order; `constant`: none.
struct RegisterForm {
  static constexpr std::uint8_t constant = 16;
  static constexpr std::uint8_t mixed = 17;  ///< no such form

  std::uint8_t base = mixed;
  std::uint8_t index = constant;
  std::uint8_t shift = 0;
  bool fs = false;
  std::uint64_t offset = 0;

  [[nodiscard]] bool known() const { return base != mixed && index != mixed; }
};

/// Value of a register by its number in a RegisterForm: 0 for `constant`.
inline std::uint64_t register_or_zero(const Registers& registers, std::uint8_t number) {
  return number < RegisterForm::constant ? registers.value[number] : 0;
}

/// Follows the origins of all registers beside an Emulator. An origin is the register whose first value, plus a
/// constant, the register now holds; `constant`; or `mixed` for anything else. May be needlessly `mixed`. Retracing a
/// copy that did not execute makes both its registers equal, which callers must take into account (Retracer).
class Provenance {
 public:
  Provenance() {
    for (std::uint8_t r = 0; r < origin_.size(); ++r) {
      origin_[r] = r;
    }
  }
  [[nodiscard]] std::uint8_t of(std::uint8_t reg) const { return origin_[reg]; }
  /// Over an instruction, from the origins before it to those after it.
  void advance(const DecodedInstruction& instruction);
  /// Back over an instruction, as Retracer undoes it.
  void go_back(const DecodedInstruction& instruction);
  /// The form of the address of `instruction`'s memory operand, whose value is `address`.
  [[nodiscard]] RegisterForm form(const DecodedInstruction& instruction, std::uint64_t address,
                                  const Registers& registers, std::uint64_t fs_base) const;

 private:
  [[nodiscard]] bool adds_constant(const DecodedInstruction& instruction) const;
  [[nodiscard]] std::uint8_t of_sum(const DecodedInstruction& lea) const;
  [[nodiscard]] std::uint8_t of_result(const DecodedInstruction& instruction) const;
  void mix(std::uint16_t registers);

  std::array<std::uint8_t, 16> origin_;
};

/// True if the result and the flags of `instruction` do not depend on its operands: xor or sub of a register with
/// itself.
[[nodiscard]] bool is_zeroing(const DecodedInstruction& instruction);

}  // namespace crosstalk::in_target
