// SPDX-License-Identifier: Apache-2.0
// Linear effects of one instruction on the integer registers. Loop counters are found from them. Pure functions of
// bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.h"
#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

/// The general registers, without rip.
inline constexpr std::size_t general_registers = 16;

/// A value as a sum of multiples of registers' values and a constant, modulo 2^64; `narrow`: known modulo 2^32 only.
struct Linear {
  std::array<std::int32_t, general_registers> factor{};
  std::uint64_t constant = 0;
  bool narrow = false;

  [[nodiscard]] static Linear of(std::size_t reg) {
    Linear value;
    value.factor.at(reg) = 1;
    return value;
  }
  [[nodiscard]] static Linear number(std::uint64_t constant) { return {{}, constant, false}; }
  /// The registers that it is made of: bit number.
  [[nodiscard]] std::uint16_t registers() const {
    std::uint16_t mask = 0;
    for (std::size_t reg = 0; reg < general_registers; ++reg) {
      mask = static_cast<std::uint16_t>(mask | (factor.at(reg) != 0 ? 1U << reg : 0U));
    }
    return mask;
  }
  bool operator==(const Linear&) const = default;
};

/// a + b * scale; nullopt if a factor leaves 32 bits.
[[nodiscard]] std::optional<Linear> add(const Linear& a, const Linear& b, std::int64_t scale);

/// The values of all registers at one place as forms of those at another; nullopt: not linear, or not known.
using RegisterForms = std::array<std::optional<Linear>, general_registers>;

/// Every register as itself.
[[nodiscard]] RegisterForms unchanged_registers();

/// base + index * scale + displacement of an access by the instruction before `behind`; nullopt if a register has no
/// form.
[[nodiscard]] std::optional<Linear> address_form(const MemoryAccess& access, std::uint64_t behind,
                                                 const RegisterForms& forms);

/// Advances `forms` over the instruction at the start of `code`. A call is assumed to return and to keep the
/// callee-saved registers of the System V psABI (rbx, rbp, rsp, r12 to r15).
void execute(std::span<const std::uint8_t> code, RegisterForms& forms);

/// A form with each register replaced by its own form in `in`; nullopt if a needed one has none.
[[nodiscard]] std::optional<Linear> substitute(const Linear& form, const RegisterForms& in);

/// Effect of an instruction on the flags.
struct FlagEffect {
  bool writes = false;               // it changes arithmetic flags
  bool subtracts = false;            // cmp and sub: the unsigned conditions compare its operands, too
  std::optional<Linear> difference;  // the value behind zero and sign, as a form of `before`
};
[[nodiscard]] FlagEffect flag_effect(std::span<const std::uint8_t> code, const RegisterForms& before);

/// Keeps the forms that both agree on: the state at a join of two ways.
void meet(RegisterForms& forms, const RegisterForms& other);

}  // namespace crosstalk::symbolizer
