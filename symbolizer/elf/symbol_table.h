// SPDX-License-Identifier: Apache-2.0
// The linker symbols of a module: functions, PLT stubs, data and TLS objects, sorted by address.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbolizer/elf/elf_file.h"

namespace crosstalk::symbolizer {

struct Symbol {
  std::uint64_t value = 0;  // module address, or offset in the TLS block
  std::uint64_t bytes = 0;  // 0: not stated
  std::string_view name;    // mangled, in the file's own memory; see SymbolTable::name for stubs
  std::uint8_t rank = 0;    // of equal addresses, the highest is shown
  bool plt = false;         // a stub for `name`
};

class SymbolTable {
 public:
  /// .symtab of `debug` or `code`, else .dynsym of `code`, and the PLT of `code`. Either may be null; both
  /// must outlive the table.
  SymbolTable(const ElfFile* code, const ElfFile* debug);

  /// The function whose stated size holds `address`, or null.
  [[nodiscard]] const Symbol* function_at(std::uint64_t address) const { return covering(functions_, address); }
  /// The nearest function symbol at or below `address`, of any size, or null.
  [[nodiscard]] const Symbol* function_before(std::uint64_t address) const;
  /// The lowest function address above `address`; UINT64_MAX: none.
  [[nodiscard]] std::uint64_t next_function(std::uint64_t address) const;
  [[nodiscard]] const Symbol* data_at(std::uint64_t address) const { return covering(data_, address); }
  [[nodiscard]] const Symbol* tls_at(std::uint64_t offset) const { return covering(tls_, offset); }
  [[nodiscard]] bool has_symtab() const { return has_symtab_; }
  [[nodiscard]] bool empty() const { return functions_.empty(); }

  /// Demangled; `name@plt` for a stub.
  [[nodiscard]] static std::string name(const Symbol& symbol);

 private:
  [[nodiscard]] static const Symbol* covering(const std::vector<Symbol>& symbols, std::uint64_t value);
  void read(const ElfFile& file, const Section& section);
  void read_plt(const ElfFile& code);

  std::vector<Symbol> functions_, data_, tls_;
  bool has_symtab_ = false;
};

}  // namespace crosstalk::symbolizer
