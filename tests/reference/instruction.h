// SPDX-License-Identifier: Apache-2.0
// An instruction's properties for the reference, from its bytes: the emulator shows a wide access in pieces, an atomic
// read-modify-write as its store, and floating-point work not at all. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace crosstalk::reference {

struct InstructionFacts {
  /// Bytes of one load and one store; 0: take the emulator's pieces as they come (rep, gather, masked, state).
  std::uint8_t load_bytes = 0, store_bytes = 0;
  bool read_modify_write = false;  // loads and stores one operand
  /// Floating-point additions, subtractions, multiplications, divisions, square roots, minima and maxima of one
  /// execution, all lanes; a fused multiply-add is two.
  std::uint8_t flops = 0;
  bool waits = false;      // pause: others should go on
  bool is_avx512 = false;  // EVEX-coded or with mask registers: the emulator does not know it
  bool operator==(const InstructionFacts&) const = default;
};

/// Null for bytes that are no instruction.
[[nodiscard]] std::optional<InstructionFacts> instruction_facts(std::span<const std::uint8_t> code);
/// "vaddpd ymm0, ymm1, ymm2"; empty for no instruction.
[[nodiscard]] std::string instruction_text(std::span<const std::uint8_t> code);

}  // namespace crosstalk::reference
