// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/libc/dynamic_symbols.h"

#include <cstring>

namespace crosstalk::in_target {
namespace {

template <class T>
const T* at(std::uint64_t address) {
  return reinterpret_cast<const T*>(address);  // NOLINT: ELF speaks in addresses
}

std::uint32_t gnu_hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != 0; ++name) {
    hash = hash * 33 + static_cast<unsigned char>(*name);
  }
  return hash;
}

bool matches(const SymbolTables& tables, std::uint32_t index, const char* name) {
  constexpr std::uint16_t hidden_version = 0x8000;  // a version other than the default one
  const Elf64_Sym& symbol = tables.symbols[index];
  return symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
         ELF64_ST_BIND(symbol.st_info) != STB_LOCAL &&
         (tables.versions == nullptr || (tables.versions[index] & hidden_version) == 0) &&
         strcmp(tables.strings + symbol.st_name, name) == 0;
}

}  // namespace

SymbolTables tables_in(const Elf64_Dyn* entry, std::uint64_t bias) {
  SymbolTables tables;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const std::uint64_t address = relocated(entry->d_un.d_ptr, bias);
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = at<Elf64_Sym>(address);
        break;
      case DT_STRTAB:
        tables.strings = at<char>(address);
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = at<std::uint32_t>(address);
        break;
      case DT_VERSYM:
        tables.versions = at<std::uint16_t>(address);
        break;
      default:
        break;
    }
  }
  return tables;
}

const Elf64_Dyn* dynamic_of(const dl_phdr_info& module) {
  const Elf64_Dyn* dynamic = nullptr;
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    if (module.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = at<Elf64_Dyn>(module.dlpi_addr + module.dlpi_phdr[i].p_vaddr);
    }
  }
  return dynamic;
}

/// Layout of DT_GNU_HASH: bucket count, index of the first hashed symbol, bloom words, bloom shift, the
/// bloom filter, the buckets, the chains (https://flapenguin.me/elf-dt-gnu-hash).
std::uint64_t function_in(const SymbolTables& tables, const char* name) {
  if (tables.symbols == nullptr || tables.strings == nullptr || tables.gnu_hash == nullptr) {
    return 0;
  }
  const std::uint32_t bucket_count = tables.gnu_hash[0];
  const std::uint32_t first = tables.gnu_hash[1];
  const std::uint32_t bloom_words = tables.gnu_hash[2];
  const std::uint32_t* buckets = tables.gnu_hash + 4 + std::size_t{2} * bloom_words;
  const std::uint32_t* chains = buckets + bucket_count;
  const std::uint32_t hash = gnu_hash_of(name);
  std::uint32_t index = bucket_count == 0 ? 0 : buckets[hash % bucket_count];
  if (index < first) {
    return 0;  // 0: the bucket is empty
  }
  for (;; ++index) {
    const std::uint32_t chained = chains[index - first];
    if ((chained | 1U) == (hash | 1U) && matches(tables, index, name)) {
      return tables.symbols[index].st_value;
    }
    if ((chained & 1U) != 0) {
      return 0;  // the last of its chain
    }
  }
}

}  // namespace crosstalk::in_target
