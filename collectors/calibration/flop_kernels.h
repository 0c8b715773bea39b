// SPDX-License-Identifier: Apache-2.0
// Loops that do nothing but floating-point instructions of one kind, as many at once as hide their latency. Written in
// assembly, since a compiler would be free to replace the measured instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/machine.h"

namespace crosstalk::collectors::calibration {

inline constexpr unsigned flop_accumulators = 12;      // independent chains: more than latency x units of any processor
inline constexpr unsigned flop_steps_a_round = 2;      // instructions of each chain in a round
inline constexpr std::size_t accumulator_stride = 64;  // bytes from one accumulator to the next

/// Vectors that each step takes: acc + addend, acc * multiplier, or acc * multiplier + addend, lane by lane, of the
/// precision of the kernel.
struct FlopOperands {
  alignas(64) unsigned char multiplier[64];
  alignas(64) unsigned char addend[64];
};

struct FlopKernel {
  models::Width width;
  models::Precision precision;
  models::Operation operation;
  /// Steps each accumulator `rounds` * `flop_steps_a_round` times; `rounds` is 1 or more. `accumulators` are read
  /// before and written after: flop_accumulators * accumulator_stride bytes.
  void (*run)(std::uint64_t rounds, const FlopOperands& operands, unsigned char* accumulators);
};

[[nodiscard]] std::span<const FlopKernel> flop_kernels();
/// True if this processor and kernel can run it.
[[nodiscard]] bool is_supported(models::Width width);
[[nodiscard]] bool is_supported(const FlopKernel& kernel);
/// Flops that `rounds` execute.
[[nodiscard]] std::uint64_t flops_of(const FlopKernel& kernel, std::uint64_t rounds);

}  // namespace crosstalk::collectors::calibration
