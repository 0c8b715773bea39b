// SPDX-License-Identifier: Apache-2.0
// The linker symbols of a module: functions, PLT stubs, data and TLS objects, sorted by address.
#pragma once

#include <gelf.h>

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
  std::uint64_t reach = 0;  // the largest end of this and all symbols before it
};

class SymbolTable {
 public:
  /// The files of a module; each may be null, and must outlive the table. `embedded` comes from embedded_symbols().
  struct Files {
    const ElfFile* code = nullptr;
    const ElfFile* debug = nullptr;
    const ElfFile* embedded = nullptr;
  };
  /// Reads the .symtab of each file, and .dynsym and the PLT of `code`: none of them contains another. Without a
  /// .symtab, also Go's own table of functions.
  explicit SymbolTable(const Files& files);

  /// The function whose stated size covers `address`, the innermost of several; or null. Never a symbol without a size,
  /// such as a label within a function.
  [[nodiscard]] const Symbol* function_at(std::uint64_t address) const { return covering(functions_, address); }
  /// True if `symbol` is exported and `name` is what its library calls the same code inside (`__GI_puts` of `puts`).
  [[nodiscard]] bool outranks(const Symbol& symbol, const std::string& name) const;
  /// The nearest symbol of code without a size at or below `address`, or null.
  [[nodiscard]] const Symbol* label_before(std::uint64_t address) const;
  /// The symbol without a size at exactly `address`, or null.
  [[nodiscard]] const Symbol* label_at(std::uint64_t address) const;
  /// True if a function with a size begins after `label` and at or before `address`.
  [[nodiscard]] bool function_between(const Symbol& label, std::uint64_t address) const;
  /// The address of the next code symbol above `address`; UINT64_MAX: none.
  [[nodiscard]] std::uint64_t next_function(std::uint64_t address) const;
  [[nodiscard]] const Symbol* data_at(std::uint64_t address) const { return covering(data_, address); }
  [[nodiscard]] const Symbol* tls_at(std::uint64_t offset) const { return covering(tls_, offset); }
  [[nodiscard]] bool has_symtab() const { return has_symtab_; }
  [[nodiscard]] bool empty() const { return functions_.empty() && labels_.empty(); }

  /// Demangled; `name@plt` for a stub.
  [[nodiscard]] static std::string name(const Symbol& symbol);

 private:
  [[nodiscard]] static const Symbol* covering(const std::vector<Symbol>& symbols, std::uint64_t value);
  void read(const ElfFile* file, std::string_view section_name, std::uint32_t section_type);
  void add(const ElfFile& file, const GElf_Sym& symbol, std::string_view name);
  void read_plt(const ElfFile& code);

  std::vector<Symbol> functions_, labels_, data_, tls_;  // labels: code without a size
  bool has_symtab_ = false;
};

}  // namespace crosstalk::symbolizer
