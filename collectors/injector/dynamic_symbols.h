// SPDX-License-Identifier: Apache-2.0
// The names that a file of code gives the dynamic linker: strip leaves them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/elf/elf_file.h"

namespace crosstalk::injector {

class DynamicSymbols {
 public:
  explicit DynamicSymbols(const symbolizer::ElfFile& file);
  /// Returns the file's own address of its definition of that name.
  [[nodiscard]] std::optional<std::uint64_t> address_of(std::string_view name) const;
  /// The function whose stated bytes hold `address`; empty: none does.
  [[nodiscard]] std::string function_at(std::uint64_t address) const;

 private:
  struct Defined {
    std::uint64_t begin = 0, bytes = 0;
    std::string name;
    bool function = false;
  };
  std::vector<Defined> defined_;  // by address
};

}  // namespace crosstalk::injector
