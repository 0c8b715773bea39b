// SPDX-License-Identifier: Apache-2.0
// Source lines and inline chains of code addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

/// The location of a row of the line table. `row` is equal for addresses of one row.
struct LineRow {
  SourceLine source;
  const void* row = nullptr;
};

/// The row of .debug_line that holds `address`.
[[nodiscard]] std::optional<LineRow> line_at(Unit& unit, std::uint64_t address);

/// The functions that hold `address`, innermost inlined call first. The line of the innermost one is that of the
/// address, the others' lines are those of the calls. Empty if the unit describes no function there.
[[nodiscard]] std::vector<Frame> inline_chain(Unit& unit, std::uint64_t address, const SourceLine& line);

/// `name`, a file name of the unit, made absolute with the directory of the compilation.
[[nodiscard]] std::string absolute_file(Dwarf_Die& unit_root, const char* name);

/// The file that an attribute of `die` (DW_AT_decl_file, DW_AT_call_file) names; empty: unknown.
[[nodiscard]] std::string file_of(Dwarf_Die& die, unsigned attribute_name);

}  // namespace crosstalk::symbolizer
