// SPDX-License-Identifier: Apache-2.0
// Targets of `jmp *table`, for the two shapes that GCC and clang emit.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "symbolizer/cfg/instructions.h"
#include "symbolizer/elf/elf_file.h"

namespace crosstalk::symbolizer {

/// Bytes of the module from an address on (any segment).
using ReadBytes = std::function<std::span<const std::uint8_t>(std::uint64_t address)>;

/// Targets of the indirect jump that ends `before`, a run of instructions by address:
///   cmp $N, x; ja ...; lea T(%rip), b; movslq (b,x,4), o; add b, o; jmp *o    entries relative to T
///   cmp $N, x; ja ...; jmp *T(,x,8)                                           absolute entries
/// Empty for another shape, or if a target lies outside `range`.
[[nodiscard]] std::vector<std::uint64_t> jump_table_targets(std::span<const Instruction> before, AddressRange range,
                                                            const ReadBytes& read);

}  // namespace crosstalk::symbolizer
