// SPDX-License-Identifier: Apache-2.0
// A bounded evaluator of the DWARF expressions that call-frame information uses (PLT stubs, signal frames,
// hand-written assembly).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.h"
#include "symbolizer/unwind/frame_rules.h"

namespace crosstalk::symbolizer {

/// The captured part of a thread's memory.
class StackMemory {
 public:
  StackMemory(std::uint64_t begin, std::span<const std::uint8_t> bytes) : begin_(begin), bytes_(bytes) {}
  /// The `width` (1, 2, 4 or 8) bytes at `address`, zero-extended; nullopt outside.
  [[nodiscard]] std::optional<std::uint64_t> read(std::uint64_t address, std::size_t width = 8) const;
  [[nodiscard]] std::uint64_t begin() const { return begin_; }

 private:
  std::uint64_t begin_;
  std::span<const std::uint8_t> bytes_;
};

/// Evaluates with `cfa` for DW_OP_call_frame_cfa. nullopt if the expression reads memory outside `memory`, uses an
/// unsupported operation, or takes too many steps.
[[nodiscard]] std::optional<std::uint64_t> evaluate(std::span<const Operation> operations, const Registers& registers,
                                                    const StackMemory& memory, std::optional<std::uint64_t> cfa);

}  // namespace crosstalk::symbolizer
