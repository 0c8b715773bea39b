// SPDX-License-Identifier: Apache-2.0
// Targets of `jmp *table`, for the two shapes that GCC and clang emit.
#pragma once

#include <vector>

#include "symbolizer/cfg/control_flow.h"

namespace crosstalk::symbolizer {

/// Targets of the indirect jump that is the last of `before`, instructions in the order of addresses that
/// end with it:
///   cmp $N, x; ja ...; lea T(%rip), b; movslq (b,x,4), o; add b, o; jmp *o    entries relative to T
///   cmp $N, x; ja ...; jmp *T(,x,8)                                           absolute entries
/// Empty when it has another shape, or when a target lies outside `range`.
[[nodiscard]] std::vector<std::uint64_t> jump_table_targets(std::span<const Instruction> before, AddressRange range,
                                                            const ReadBytes& read);

}  // namespace crosstalk::symbolizer
