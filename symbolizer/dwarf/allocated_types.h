// SPDX-License-Identifier: Apache-2.0
// The type that an allocation is for, by debug information: the arguments of malloc and operator new do not tell.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>

#include "symbolizer/dwarf/debug_info.h"

namespace crosstalk::symbolizer {

/// The type of the elements that the call at `address` allocates. Searches from the innermost function outwards for the
/// element type of a standard allocator, the T of make_unique and make_shared, or the target of a pointer that is
/// declared on the line of the call (`Node* n = malloc(...)`, `auto n = std::unique_ptr<Node>(new Node)`). nullopt if
/// it finds none: for a pointer declared elsewhere, and for pointers to void.
[[nodiscard]] std::optional<Dwarf_Die> allocated_type(Unit& unit, std::uint64_t address);

}  // namespace crosstalk::symbolizer
