// SPDX-License-Identifier: Apache-2.0
// The symbols that the dynamic loader sees, of a file that has no table of sections (some linkers and packers leave it
// out).
#pragma once

#include <gelf.h>

#include <string_view>
#include <vector>

#include "symbolizer/elf/elf_file.h"

namespace crosstalk::symbolizer {

struct DynamicSymbol {
  GElf_Sym symbol{};
  std::string_view name;  // in the file's memory
};

/// Finds them by the dynamic segment; empty if there is none.
[[nodiscard]] std::vector<DynamicSymbol> dynamic_symbols(const ElfFile& file);

}  // namespace crosstalk::symbolizer
