// SPDX-License-Identifier: Apache-2.0
// Debug types: names as in source, and which member lies at an offset.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string>

#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

/// The type of a variable or member, DW_AT_type; nullopt for none.
[[nodiscard]] std::optional<Dwarf_Die> type_of(Dwarf_Die& die);
/// Bytes of an object of the type; nullopt if that is not known.
[[nodiscard]] std::optional<std::uint64_t> size_of(Dwarf_Die type);
/// "long unsigned int", "Node*", "int[4]", ...
[[nodiscard]] std::string type_name(Dwarf_Die& type);

/// The innermost member of `type` at byte `offset`: struct members by name, arrays as [i], members of base classes, the
/// first member of a union. Members with names reserved to the implementation (`_M_...`, `__...`) end the path, so that
/// a std::atomic or a mutex is one field; the elements of a std::array still count. nullopt if `offset` is outside the
/// type or its size is unknown. The path is empty for a type without members and for padding of the outermost struct.
[[nodiscard]] std::optional<FieldPath> field_at(Dwarf_Die type, std::uint64_t offset);

}  // namespace crosstalk::symbolizer
