// SPDX-License-Identifier: Apache-2.0
// Facts about the fixture programs: addresses of symbols, and lines by their marks.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::symbolizer {

inline std::string fixture(const std::string& name) { return std::string(FIXTURES) + "/" + name; }

/// Line of the fixture's source with the comment `mark: NAME`; 0: none.
inline std::uint32_t line_of(const std::string& mark) {
  std::ifstream source(FIXTURE_SOURCE);
  std::string text;
  for (std::uint32_t line = 1; std::getline(source, text); ++line) {
    if (text.ends_with("mark: " + mark)) {
      return line;
    }
  }
  return 0;
}

/// Value of a symbol of a file that is not stripped, by its mangled name; 0: none.
inline std::uint64_t address_of(const std::string& path, const std::string& name) {
  const auto file = ElfFile::open(path);
  const Section* symtab = file ? file->section(".symtab") : nullptr;
  if (symtab == nullptr) {
    return 0;
  }
  Elf_Data* data = elf_getdata(symtab->handle, nullptr);
  GElf_Sym symbol;
  for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    const char* text = elf_strptr(file->elf(), symtab->link, symbol.st_name);
    if (text != nullptr && name == text) {
      return symbol.st_value;
    }
  }
  return 0;
}

inline Options offline() {
  Options options;
  options.debuginfod = false;
  return options;
}

/// A Symbolizer with one module.
struct Program {
  explicit Program(const std::string& name, Options options = offline())
      : path(fixture(name)), symbols(std::move(options)), id(symbols.add_module({path, "", false})) {}
  [[nodiscard]] std::uint64_t address(const std::string& symbol) const { return address_of(path, symbol); }
  std::string path;
  Symbolizer symbols;
  ModuleId id;
};

}  // namespace crosstalk::symbolizer
