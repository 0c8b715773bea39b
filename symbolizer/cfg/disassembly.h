// SPDX-License-Identifier: Apache-2.0
// Instructions as text, as objdump and perf annotate show them (AT&T syntax).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace crosstalk::symbolizer {

struct Disassembled {
  std::string text;                          // "lock incq 0x2ee4(%rip)"; empty: no valid instruction
  std::optional<std::uint64_t> code_target;  // of a direct jump or call
  std::optional<std::uint64_t> data_target;  // of an operand that is relative to the instruction
};

/// Disassembles the instruction at the start of `code`, which lies at `address`.
[[nodiscard]] Disassembled disassemble(std::span<const std::uint8_t> code, std::uint64_t address);

}  // namespace crosstalk::symbolizer
