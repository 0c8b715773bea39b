// SPDX-License-Identifier: Apache-2.0
// Operations on whole numbers by vector width, element size and operation. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "symbolizer/loops/flop_kinds.h"

namespace crosstalk::symbolizer {

enum class IntegerElement : std::uint8_t { int8, int16, int32, int64 };
enum class IntegerOperation : std::uint8_t { add, mul };  // add: also logic, shifts, minima, averages

/// The operations of one instruction.
struct InstructionIntegers {
  double operations = 0;  // 0: none
  FlopWidth width = FlopWidth::scalar;
  IntegerElement element = IntegerElement::int64;
  IntegerOperation operation = IntegerOperation::add;
};
/// Counts one for each element that is added, subtracted, multiplied, shifted, combined by logic, or compared for its
/// minimum or maximum. Counts no operations that only steer a loop or compute addresses: a constant added to a register
/// (`add $8, %rax`, `inc`), `lea`, comparisons, moves, registers that are cleared. nullopt if the instruction is
/// invalid, or if its code does not fix the number (masks).
[[nodiscard]] std::optional<InstructionIntegers> integers_of(std::span<const std::uint8_t> code);

/// Amounts by kind.
struct IntegersByKind {
  static constexpr std::size_t widths = 4, elements = 4, operations = 2;
  std::array<double, widths * elements * operations> of{};

  [[nodiscard]] static constexpr std::size_t index(FlopWidth width, IntegerElement element,
                                                   IntegerOperation operation) {
    return (static_cast<std::size_t>(width) * elements + static_cast<std::size_t>(element)) * operations +
           static_cast<std::size_t>(operation);
  }
  void add(const InstructionIntegers& more) { of[index(more.width, more.element, more.operation)] += more.operations; }
  [[nodiscard]] double total() const;
};

}  // namespace crosstalk::symbolizer
