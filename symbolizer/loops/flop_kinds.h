// SPDX-License-Identifier: Apache-2.0
// Floating-point operations by vector width, element type and operation. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace crosstalk::symbolizer {

enum class FlopWidth : std::uint8_t { scalar, sse, avx2, avx512 };  // scalar, 16, 32, 64 bytes
/// Returns the width of operations on vectors of 128, 256 or 512 bits.
[[nodiscard]] constexpr FlopWidth width_of_vector(unsigned bits) {
  return bits >= 512 ? FlopWidth::avx512 : bits >= 256 ? FlopWidth::avx2 : FlopWidth::sse;
}
enum class FlopType : std::uint8_t { float64, float32 };
enum class FlopOperation : std::uint8_t { add, mul, fma };  // add: subtraction, minimum and maximum, too

/// The operations of one instruction.
struct InstructionFlops {
  double flops = 0;    // as in Work::flops
  bool other = false;  // a division, a root, a reciprocal, x87, half precision: the rest says nothing
  FlopWidth width = FlopWidth::scalar;
  FlopType type = FlopType::float64;
  FlopOperation operation = FlopOperation::add;
};
/// The operations of the instruction at the start of `code`; nullopt if it is invalid, or if its code does not fix
/// their number (masks).
[[nodiscard]] std::optional<InstructionFlops> flops_by_kind(std::span<const std::uint8_t> code);

/// Amounts by kind.
struct FlopsByKind {
  static constexpr std::size_t kinds = 4U * 2U * 3U;
  std::array<double, kinds> of{};
  double other = 0;

  [[nodiscard]] static constexpr std::size_t index(FlopWidth width, FlopType type, FlopOperation operation) {
    return (static_cast<std::size_t>(width) * 2 + static_cast<std::size_t>(type)) * 3 +
           static_cast<std::size_t>(operation);
  }
  void add(const InstructionFlops& more);
  void add(const FlopsByKind& more, double times);
  [[nodiscard]] double total() const;
};

}  // namespace crosstalk::symbolizer
