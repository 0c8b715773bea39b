// SPDX-License-Identifier: Apache-2.0
// What code allocates memory for, by its debug information: malloc and operator new do not say.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>

#include "symbolizer/dwarf/debug_info.h"

namespace crosstalk::symbolizer {

/// The type of the elements that the call at `address` allocates room for. From the innermost function there outwards:
/// the element type of a standard allocator, the T of make_unique and make_shared, or what a pointer points to that is
/// declared on the line of the call (`Node* n = malloc(...)`, `auto n = std::unique_ptr<Node>(new Node)`). nullopt
/// where none of these tells: memory that is assigned to a pointer declared elsewhere, and pointers to void.
[[nodiscard]] std::optional<Dwarf_Die> allocated_type(Unit& unit, std::uint64_t address);

}  // namespace crosstalk::symbolizer
