// SPDX-License-Identifier: Apache-2.0
// Loops of integer instructions: chains in which each waits for the one before, and independent ones. In assembly, as
// flop_kernels.h.
#pragma once

#include <cstdint>
#include <span>

#include "models/machine.h"

namespace crosstalk::collectors::calibration {

inline constexpr unsigned unrolled = 16;  // instructions of a kind in a round; of all kernels of this file

struct ChainKernel {
  models::Chain chain;
  /// Executes `rounds` * `unrolled` links, each of which adds 1 to the result, which begins at 0. For `load` the links
  /// lead nowhere: returns their number, as counted by the rounds that were made.
  std::uint64_t (*run)(std::uint64_t rounds);
};
/// Returns the kernels of all chains but `branch_mispredicted`.
[[nodiscard]] std::span<const ChainKernel> chain_kernels();

/// Returns the kernel of one of these chains.
[[nodiscard]] const ChainKernel& chain_of(models::Chain chain);

struct InstructionKernel {
  models::Instruction instruction;
  /// Executes `rounds` * `unrolled` instructions of the kind, and returns their result: for additions and branches
  /// their number, for multiplications 3 to the power of a register's part of them, modulo 2^64.
  std::uint64_t (*run)(std::uint64_t rounds);
};
inline constexpr unsigned multiplying_registers = 8;
[[nodiscard]] std::span<const InstructionKernel> instruction_kernels();

/// Follows `rounds` * `unrolled` pointers, each at the address in the one before, and returns the last.
void* follow(void* first, std::uint64_t rounds);

/// Takes a branch for each byte that is not 0; returns how many those are.
std::uint64_t count_by_branches(std::span<const unsigned char> bytes);

}  // namespace crosstalk::collectors::calibration
