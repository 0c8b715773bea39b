// SPDX-License-Identifier: Apache-2.0
// The dynamic symbols of a loaded module, as its own hash tables have them. No allocation, no lock.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>

namespace crosstalk::in_target {

/// The dynamic symbols of a loaded module.
struct SymbolTables {
  const Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint16_t* versions = nullptr;
};

/// The dynamic linker relocates these pointers in place for all but read-only dynamic sections (vdso).
inline std::uint64_t relocated(std::uint64_t pointer, std::uint64_t bias) {
  return pointer < bias ? pointer + bias : pointer;
}

/// The module's dynamic section; null: it has none.
const Elf64_Dyn* dynamic_of(const dl_phdr_info& module);
SymbolTables tables_in(const Elf64_Dyn* entry, std::uint64_t bias);
/// The address in the file of the function of that name, of its default version; 0: it is not defined there.
std::uint64_t function_in(const SymbolTables& tables, const char* name);

}  // namespace crosstalk::in_target
