// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/symbol_table.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "symbolizer/elf/demangle.h"

namespace crosstalk::symbolizer {
namespace {

// How many symbols below an address are tried for one that covers it: symbols may nest (local labels).
constexpr int overlap_limit = 64;

/// Prefers what the programmer wrote: global over weak over local, no leading underscore, sized over not.
std::uint8_t rank_of(const GElf_Sym& symbol, std::string_view name) {
  const auto bind = GELF_ST_BIND(symbol.st_info);
  unsigned rank = bind == STB_GLOBAL ? 2 : bind == STB_WEAK ? 1 : 0;
  rank = rank * 2 + (name.starts_with('_') && !name.starts_with("_Z") ? 0 : 1);
  rank = rank * 2 + (symbol.st_size > 0 ? 1 : 0);
  return static_cast<std::uint8_t>(rank);
}

void sort(std::vector<Symbol>& symbols) {
  std::stable_sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) {
    return a.value != b.value ? a.value < b.value : a.rank < b.rank;
  });
}

bool in_executable_section(const ElfFile& file, const GElf_Sym& symbol) {
  GElf_Shdr header;
  Elf_Scn* section = elf_getscn(file.elf(), symbol.st_shndx);
  return section != nullptr && gelf_getshdr(section, &header) != nullptr && (header.sh_flags & SHF_EXECINSTR) != 0;
}

/// The symbol that each GOT slot is relocated with.
std::unordered_map<std::uint64_t, std::string_view> got_slots(const ElfFile& file) {
  std::unordered_map<std::uint64_t, std::string_view> slots;
  for (const Section& section : file.sections()) {
    if (section.type != SHT_RELA || (section.flags & SHF_ALLOC) == 0) {
      continue;
    }
    Elf_Scn* symbols = elf_getscn(file.elf(), section.link);
    GElf_Shdr symbols_header;
    Elf_Data* data = elf_getdata(section.handle, nullptr);
    Elf_Data* symbols_data = symbols != nullptr ? elf_getdata(symbols, nullptr) : nullptr;
    if (data == nullptr || symbols_data == nullptr || gelf_getshdr(symbols, &symbols_header) == nullptr) {
      continue;
    }
    GElf_Rela relocation;
    GElf_Sym symbol;
    for (int i = 0; gelf_getrela(data, i, &relocation) != nullptr; ++i) {
      const auto type = GELF_R_TYPE(relocation.r_info);
      if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
          gelf_getsym(symbols_data, static_cast<int>(GELF_R_SYM(relocation.r_info)), &symbol) == nullptr) {
        continue;
      }
      const char* name = elf_strptr(file.elf(), symbols_header.sh_link, symbol.st_name);
      if (name != nullptr && *name != '\0') {
        slots.emplace(relocation.r_offset, name);
      }
    }
  }
  return slots;
}

}  // namespace

SymbolTable::SymbolTable(const ElfFile* code, const ElfFile* debug) {
  for (const ElfFile* file : {debug, code}) {
    const Section* symtab = file != nullptr ? file->section(".symtab") : nullptr;
    if (symtab != nullptr && symtab->type == SHT_SYMTAB) {
      read(*file, *symtab);
      has_symtab_ = !functions_.empty();
    }
    if (has_symtab_) {
      break;
    }
  }
  const Section* dynamic = code != nullptr ? code->section(".dynsym") : nullptr;
  if (!has_symtab_ && dynamic != nullptr && dynamic->type == SHT_DYNSYM) {
    read(*code, *dynamic);
  }
  if (code != nullptr) {
    read_plt(*code);
  }
  sort(functions_);
  sort(data_);
  sort(tls_);
}

void SymbolTable::read(const ElfFile& file, const Section& section) {
  Elf_Data* data = elf_getdata(section.handle, nullptr);
  if (data == nullptr) {
    return;
  }
  GElf_Sym symbol;
  for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    const auto type = GELF_ST_TYPE(symbol.st_info);
    const bool code = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
    const bool object = type == STT_OBJECT || type == STT_COMMON;
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS || (!code && !object && type != STT_TLS) ||
        symbol.st_value > UINT64_MAX - symbol.st_size) {
      continue;
    }
    const char* text = elf_strptr(file.elf(), section.link, symbol.st_name);
    if (text == nullptr || *text == '\0' || (type == STT_NOTYPE && !in_executable_section(file, symbol))) {
      continue;
    }
    std::vector<Symbol>& list = code ? functions_ : object ? data_ : tls_;
    list.push_back({symbol.st_value, symbol.st_size, text, rank_of(symbol, text), false});
  }
}

// A stub is `[endbr64] [bnd] jmp *slot(%rip)`; whatever its layout, the slot's relocation names its function.
void SymbolTable::read_plt(const ElfFile& code) {
  std::unordered_map<std::uint64_t, std::string_view> slots;
  for (const Section& section : code.sections()) {
    if (!section.name.starts_with(".plt") || !section.executable()) {
      continue;
    }
    if (slots.empty()) {
      slots = got_slots(code);
    }
    const auto bytes = ElfFile::contents(section);
    const std::uint64_t entry = section.entry_bytes == 8 ? 8 : 16;
    for (std::size_t i = 0; i + 6 <= bytes.size(); ++i) {
      if (bytes[i] != 0xff || bytes[i + 1] != 0x25) {
        continue;
      }
      std::int32_t displacement = 0;
      std::memcpy(&displacement, bytes.data() + i + 2, 4);
      const auto slot = slots.find(section.address + i + 6 + static_cast<std::uint64_t>(std::int64_t{displacement}));
      if (slot != slots.end()) {
        functions_.push_back({section.address + i / entry * entry, entry, slot->second, 0, true});
        i += 5;
      }
    }
  }
}

const Symbol* SymbolTable::covering(const std::vector<Symbol>& symbols, std::uint64_t value) {
  auto next = std::upper_bound(symbols.begin(), symbols.end(), value,
                               [](std::uint64_t v, const Symbol& symbol) { return v < symbol.value; });
  for (int tries = 0; next != symbols.begin() && tries < overlap_limit; ++tries) {
    --next;
    if (value - next->value < next->bytes) {
      return &*next;
    }
  }
  return nullptr;
}

const Symbol* SymbolTable::function_before(std::uint64_t address) const {
  const auto next = std::upper_bound(functions_.begin(), functions_.end(), address,
                                     [](std::uint64_t v, const Symbol& symbol) { return v < symbol.value; });
  return next == functions_.begin() ? nullptr : &*std::prev(next);
}

std::uint64_t SymbolTable::next_function(std::uint64_t address) const {
  const auto next = std::upper_bound(functions_.begin(), functions_.end(), address,
                                     [](std::uint64_t v, const Symbol& symbol) { return v < symbol.value; });
  return next == functions_.end() ? UINT64_MAX : next->value;
}

std::string SymbolTable::name(const Symbol& symbol) { return demangle(symbol.name) + (symbol.plt ? "@plt" : ""); }

}  // namespace crosstalk::symbolizer
