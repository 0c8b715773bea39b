// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/dynamic_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "symbolizer/elf/bytes.h"

namespace crosstalk::injector {

DynamicSymbols::DynamicSymbols(const symbolizer::ElfFile& file) {
  const symbolizer::Section* const symbols = file.section(".dynsym");
  const symbolizer::Section* const strings = file.section(".dynstr");
  if (symbols == nullptr || strings == nullptr) {
    return;
  }
  const auto entries = symbolizer::ElfFile::contents(*symbols);
  const auto names = symbolizer::ElfFile::contents(*strings);
  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= entries.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, entries.data() + at, sizeof symbol);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || symbol.st_name >= names.size()) {
      continue;
    }
    defined_.push_back({symbol.st_value, symbol.st_size, std::string(symbolizer::name_at(names, symbol.st_name)),
                        ELF64_ST_TYPE(symbol.st_info) == STT_FUNC});
  }
  std::stable_sort(defined_.begin(), defined_.end(),
                   [](const Defined& a, const Defined& b) { return a.begin < b.begin; });
}

std::optional<std::uint64_t> DynamicSymbols::address_of(std::string_view name) const {
  const auto found =
      std::find_if(defined_.begin(), defined_.end(), [name](const Defined& defined) { return defined.name == name; });
  return found == defined_.end() ? std::nullopt : std::optional(found->begin);
}

std::string DynamicSymbols::function_at(std::uint64_t address) const {
  auto after = std::upper_bound(defined_.begin(), defined_.end(), address,
                                [](std::uint64_t at, const Defined& defined) { return at < defined.begin; });
  // If several names have one address, the public one counts, which has no underscores before it.
  std::string name;
  while (after != defined_.begin() && address - std::prev(after)->begin < std::prev(after)->bytes) {
    --after;
    if (after->function && (name.empty() || name.front() == '_')) {
      name = after->name;
    }
  }
  return name;
}

}  // namespace crosstalk::injector
