// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/symbol_table.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <unordered_map>

#include "symbolizer/elf/demangle.h"
#include "symbolizer/elf/dynamic_symbols.h"
#include "symbolizer/elf/go_functions.h"

namespace crosstalk::symbolizer {
namespace {

// The most symbols below an address to try. They nest; damaged files nest a million in one.
constexpr int overlap_limit = 4096;

/// Prefers the programmer's names: global over weak over local, no leading underscore, sized over unsized.
std::uint8_t rank_of(const GElf_Sym& symbol, std::string_view name) {
  const auto bind = GELF_ST_BIND(symbol.st_info);
  unsigned rank = bind == STB_GLOBAL ? 2 : bind == STB_WEAK ? 1 : 0;
  rank = rank * 2 + (name.starts_with('_') && !name.starts_with("_Z") ? 0 : 1);
  rank = rank * 2 + (symbol.st_size > 0 ? 1 : 0);
  return static_cast<std::uint8_t>(rank);
}

/// Sorts by value, then rank, and removes duplicates of several tables.
void order(std::vector<Symbol>& symbols) {
  std::stable_sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) {
    return std::tie(a.value, a.rank, a.name) < std::tie(b.value, b.rank, b.name);
  });
  const auto same = [](const Symbol& a, const Symbol& b) {
    return a.value == b.value && a.bytes == b.bytes && a.rank == b.rank && a.name == b.name && a.plt == b.plt;
  };
  symbols.erase(std::unique(symbols.begin(), symbols.end(), same), symbols.end());
  std::uint64_t reach = 0;
  for (Symbol& symbol : symbols) {
    reach = std::max(reach, symbol.value + symbol.bytes);
    symbol.reach = reach;
  }
}

auto first_above(const std::vector<Symbol>& symbols, std::uint64_t value) {
  return std::upper_bound(symbols.begin(), symbols.end(), value,
                          [](std::uint64_t v, const Symbol& symbol) { return v < symbol.value; });
}

bool in_executable_section(const ElfFile& file, const GElf_Sym& symbol) {
  GElf_Shdr header;
  Elf_Scn* section = elf_getscn(file.elf(), symbol.st_shndx);
  return section != nullptr && gelf_getshdr(section, &header) != nullptr && (header.sh_flags & SHF_EXECINSTR) != 0;
}

/// The symbols of the relocations of GOT slots.
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

SymbolTable::SymbolTable(const Files& files) {
  for (const ElfFile* file : {files.debug, files.code, files.embedded}) {
    read(file, ".symtab", SHT_SYMTAB);
  }
  has_symtab_ = !functions_.empty() || !labels_.empty();
  read(files.code, ".dynsym", SHT_DYNSYM);
  if (files.code != nullptr) {
    for (const auto& [symbol, name] :
         files.code->sections().empty() ? dynamic_symbols(*files.code) : std::vector<DynamicSymbol>()) {
      add(*files.code, symbol, name);
    }
    read_plt(*files.code);
    for (const GoFunction& function : has_symtab_ ? std::vector<GoFunction>() : go_functions(*files.code)) {
      functions_.push_back(
          {function.range.begin, function.range.end - function.range.begin, function.name, 0, false, 0});
    }
  }
  for (std::vector<Symbol>* symbols : {&functions_, &labels_, &data_, &tls_}) {
    order(*symbols);
  }
}

void SymbolTable::read(const ElfFile* file, std::string_view section_name, std::uint32_t section_type) {
  const Section* section = file != nullptr ? file->section(section_name) : nullptr;
  Elf_Data* data =
      section != nullptr && section->type == section_type ? elf_getdata(section->handle, nullptr) : nullptr;
  if (data == nullptr) {
    return;
  }
  GElf_Sym symbol;
  for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    if (const char* text = elf_strptr(file->elf(), section->link, symbol.st_name); text != nullptr) {
      add(*file, symbol, text);
    }
  }
}

void SymbolTable::add(const ElfFile& file, const GElf_Sym& symbol, std::string_view name) {
  const auto type = GELF_ST_TYPE(symbol.st_info);
  const bool code = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
  const bool object = type == STT_OBJECT || type == STT_COMMON;
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS || (!code && !object && type != STT_TLS) ||
      symbol.st_value > UINT64_MAX - symbol.st_size || name.empty() ||
      (type == STT_NOTYPE && !in_executable_section(file, symbol))) {
    return;
  }
  std::vector<Symbol>& list = !code ? (object ? data_ : tls_) : symbol.st_size != 0 ? functions_ : labels_;
  list.push_back({symbol.st_value, symbol.st_size, name, rank_of(symbol, name), false, 0});
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
        functions_.push_back({section.address + i / entry * entry, entry, slot->second, 0, true, 0});
        i += 5;
      }
    }
  }
}

const Symbol* SymbolTable::covering(const std::vector<Symbol>& symbols, std::uint64_t value) {
  auto next = first_above(symbols, value);
  for (int tries = 0; next != symbols.begin() && tries < overlap_limit; ++tries) {
    --next;
    if (next->reach <= value) {
      return nullptr;
    }
    if (value - next->value < next->bytes) {
      return &*next;
    }
  }
  return nullptr;
}

bool SymbolTable::outranks(const Symbol& symbol, const std::string& name) const {
  constexpr std::uint8_t least_exported = 4;  // of rank_of()
  constexpr std::uint8_t most_reserved = 1;
  for (auto other = first_above(functions_, symbol.value);
       other != functions_.begin() && std::prev(other)->value == symbol.value; --other) {
    const Symbol& alias = *std::prev(other);
    if (alias.rank <= most_reserved && alias.name == name) {
      return symbol.rank >= least_exported;
    }
  }
  return false;
}

const Symbol* SymbolTable::label_before(std::uint64_t address) const {
  const auto next = first_above(labels_, address);
  return next == labels_.begin() ? nullptr : &*std::prev(next);
}

const Symbol* SymbolTable::label_at(std::uint64_t address) const {
  const Symbol* label = label_before(address);
  return label != nullptr && label->value == address ? label : nullptr;
}

bool SymbolTable::function_between(const Symbol& label, std::uint64_t address) const {
  return first_above(functions_, label.value) != first_above(functions_, address);
}

std::uint64_t SymbolTable::next_function(std::uint64_t address) const {
  std::uint64_t lowest = UINT64_MAX;
  for (const std::vector<Symbol>* symbols : {&functions_, &labels_}) {
    const auto next = first_above(*symbols, address);
    lowest = next == symbols->end() ? lowest : std::min(lowest, next->value);
  }
  return lowest;
}

std::string SymbolTable::name(const Symbol& symbol) { return demangle(symbol.name) + (symbol.plt ? "@plt" : ""); }

}  // namespace crosstalk::symbolizer
