// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "collectors/in_target/interpose/interpose.h"

extern "C" const char __ehdr_start __attribute__((visibility("hidden")));  // NOLINT: the linker's name

namespace crosstalk::in_target {
namespace {

/// What a loaded module says about its dynamic symbols.
struct SymbolTables {
  const Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint16_t* versions = nullptr;
};

template <class T>
const T* at(std::uint64_t address) {
  return reinterpret_cast<const T*>(address);  // NOLINT: ELF speaks in addresses
}

/// The dynamic linker relocates these pointers in place for all but read-only dynamic sections (vdso).
std::uint64_t relocated(std::uint64_t pointer, std::uint64_t bias) { return pointer < bias ? pointer + bias : pointer; }

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

SymbolTables tables_of(const dl_phdr_info& module) {
  const Elf64_Dyn* dynamic = nullptr;
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    if (module.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = at<Elf64_Dyn>(module.dlpi_addr + module.dlpi_phdr[i].p_vaddr);
    }
  }
  return tables_in(dynamic, module.dlpi_addr);
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

/// Layout of DT_GNU_HASH: bucket count, index of the first hashed symbol, bloom words, bloom shift, the
/// bloom filter, the buckets, the chains (https://flapenguin.me/elf-dt-gnu-hash).
std::uint64_t value_in(const SymbolTables& tables, const char* name) {
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

struct Query {
  const char* name;
  bool past_own = false;
  void* before_own = nullptr;
  void* found = nullptr;
};

int visit(dl_phdr_info* module, std::size_t /*bytes*/, void* data) {
  auto& query = *static_cast<Query*>(data);
  if (module->dlpi_addr == own_bias()) {
    query.past_own = true;
    return 0;
  }
  // The kernel's functions are no stand-ins for libc's, and the program may have unmapped them.
  constexpr std::string_view of_kernel = "__vdso_";
  const bool wants_kernel = strncmp(query.name, of_kernel.data(), of_kernel.size()) == 0;
  if (!wants_kernel && module->dlpi_addr == getauxval(AT_SYSINFO_EHDR)) {
    return 0;
  }
  const std::uint64_t value = value_in(tables_of(*module), query.name);
  if (value == 0) {
    return 0;
  }
  auto* address = reinterpret_cast<void*>(module->dlpi_addr + value);  // NOLINT: ELF speaks in addresses
  if (query.past_own) {
    query.found = address;
    return 1;
  }
  query.before_own = query.before_own == nullptr ? address : query.before_own;
  return 0;
}

using Iterate = int(ModuleVisitor, void*);
constinit std::atomic<Iterate*> real_iterate{nullptr};

// We stand in for it, too, so it can not be asked for itself. The loader's list is read without its lock: this is
// called first before there are other threads.
Iterate* find_iterate() {
  std::uint64_t before_own = 0;
  std::uint64_t behind_own = 0;
  bool past_own = false;
  for (const link_map* module = _r_debug.r_map; module != nullptr && behind_own == 0; module = module->l_next) {
    if (module->l_addr == own_bias()) {
      past_own = true;
      continue;
    }
    const std::uint64_t value = value_in(tables_in(module->l_ld, module->l_addr), "dl_iterate_phdr");
    if (value != 0 && past_own) {
      behind_own = module->l_addr + value;
    } else if (value != 0 && before_own == 0) {
      before_own = module->l_addr + value;
    }
  }
  return reinterpret_cast<Iterate*>(behind_own != 0 ? behind_own : before_own);  // NOLINT: a symbol is an address
}

}  // namespace

int iterate_modules(ModuleVisitor visitor, void* data) {
  Iterate* iterate = real_iterate.load(std::memory_order_relaxed);
  if (iterate == nullptr) {
    iterate = find_iterate();
    real_iterate.store(iterate, std::memory_order_relaxed);  // every thread finds the same
  }
  return iterate != nullptr ? iterate(visitor, data) : 0;
}

std::uint64_t own_bias() { return reinterpret_cast<std::uint64_t>(&__ehdr_start); }  // NOLINT: our own header

void* next_definition(const char* name) {
  const SavedErrno saved;
  Query query{name};
  iterate_modules(visit, &query);
  return query.found != nullptr ? query.found : query.before_own;
}

}  // namespace crosstalk::in_target
