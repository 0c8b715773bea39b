// SPDX-License-Identifier: Apache-2.0
// What one instruction does to the integer registers, as far as it is linear: the ground on which a loop's counters
// are found. Pure functions from bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.h"

namespace crosstalk::symbolizer {

/// The registers that code computes with; rip is none of them.
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
  bool operator==(const Linear&) const = default;
};

/// a + b * scale; nullopt when a factor leaves 32 bits.
[[nodiscard]] std::optional<Linear> add(const Linear& a, const Linear& b, std::int64_t scale);

/// The values of all registers at a place, in terms of those at another; nullopt: not linear, or not known.
using RegisterForms = std::array<std::optional<Linear>, general_registers>;

/// Every register as itself.
[[nodiscard]] RegisterForms unchanged_registers();

/// Takes `forms` from before the instruction at the start of `code` to behind it. A call is taken to have returned and
/// to have kept what the System V psABI says a callee keeps (rbx, rbp, rsp, r12 to r15).
void execute(std::span<const std::uint8_t> code, RegisterForms& forms);

/// A register form with each register replaced by its own form in `in`; nullopt when one that it needs has none.
[[nodiscard]] std::optional<Linear> substitute(const Linear& form, const RegisterForms& in);

/// What the flags say after an instruction.
struct FlagEffect {
  bool writes = false;               // it changes arithmetic flags
  bool subtracts = false;            // cmp and sub: the unsigned conditions compare its operands, too
  std::optional<Linear> difference;  // what zero and sign are of, in the terms of `before`
};
[[nodiscard]] FlagEffect flag_effect(std::span<const std::uint8_t> code, const RegisterForms& before);

/// What both have in common: how registers are where two ways meet.
void meet(RegisterForms& forms, const RegisterForms& other);

}  // namespace crosstalk::symbolizer
