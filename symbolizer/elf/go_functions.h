// SPDX-License-Identifier: Apache-2.0
// The functions in the table that Go's runtime needs for its own stack traces: a stripped program keeps it.
#pragma once

#include <string_view>
#include <vector>

#include "symbolizer/elf/elf_file.h"

namespace crosstalk::symbolizer {

struct GoFunction {
  AddressRange range;
  std::string_view name;  // in the file's memory
};

/// Reads the tables of Go 1.18 and later; empty if there is none.
[[nodiscard]] std::vector<GoFunction> go_functions(const ElfFile& file);

}  // namespace crosstalk::symbolizer
