// SPDX-License-Identifier: Apache-2.0
// A library that is loaded late interposes nothing: modules that were loaded before it have the addresses of libc's
// functions in their own tables by then. So these tables are changed, entry by entry, and put back at the end.
//
// An entry is changed if it has the address of the function that would be called without us, or if it is filled in at
// the first call only (then it points into its own module). Pages that the loader has made read-only are made writable
// for that moment. The C library, the dynamic loader and our own libraries stay as they are.
//
// Modules that are loaded later are gone through when they are noticed (objects/modules.cpp). The list of modules has
// them before the loader has relocated them: one whose pages are not read-only yet is left to the loader, and to the
// next look. All is done within the loader's list, that is under its lock, so by one thread at a time.
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/libc/dynamic_symbols.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

using modules::Extent;

struct Range {
  std::uint64_t begin = 0, end = 0;
  [[nodiscard]] bool contains(std::uint64_t address) const { return address >= begin && address < end; }
};

struct Patch {
  std::uint64_t place = 0;     // of the entry
  std::uint64_t original = 0;  // the original address
  std::uint64_t ours = 0;      // our address
  Range read_only;             // the pages that it is in, as the loader has protected them; empty: it has not
};

constexpr std::size_t most_patches = 7168;
constinit Patch* patches = nullptr;  // mapped when the library was brought in: launched programs need none
constinit std::size_t patch_count = 0;
constinit bool too_many = false;
constinit bool unfinished = false;            // some module was not relocated yet
constinit std::atomic<bool> patching{false};  // from patch_modules() to the end of the session

std::atomic_ref<std::uint64_t> entry_at(std::uint64_t place) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place));  // NOLINT: an address
}

/// The part of the module that the loader has made read-only once it was relocated (PT_GNU_RELRO), as it does it.
Range read_only_part(const dl_phdr_info& module) {
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    const Elf64_Phdr& part = module.dlpi_phdr[i];
    if (part.p_type == PT_GNU_RELRO) {
      const std::uint64_t begin = module.dlpi_addr + part.p_vaddr;
      return {begin & ~std::uint64_t{page_bytes - 1}, (begin + part.p_memsz) & ~std::uint64_t{page_bytes - 1}};
    }
  }
  return {};
}

bool protect(const Range& pages, int protection) {
  return pages.begin >= pages.end || system_call(SYS_mprotect, pages.begin, pages.end - pages.begin, protection) >= 0;
}

/// True if these pages are writable. Asks the one question that the kernel answers quickly. It makes the pages present
/// for writing, as relocating them does anyway.
bool is_writable(const Range& pages) {
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, Linux 5.14
  return system_call(SYS_madvise, pages.begin, page_bytes, populate_write) >= 0;
}

/// True if the loader has relocated the module.
bool is_relocated(const Range& read_only) { return read_only.begin >= read_only.end || !is_writable(read_only); }

/// A part of a module's relocations, and the module.
struct Relocations {
  const Elf64_Rela* entries = nullptr;
  std::size_t count = 0;
};

struct Module {
  Relocations plt, other;
  SymbolTables symbols;
  std::uint64_t bias = 0;
  Extent extent;
  Range read_only;
};

Module described(const dl_phdr_info& info) {
  Module module;
  module.bias = info.dlpi_addr;
  module.extent = modules::extent_of(info);
  module.read_only = read_only_part(info);
  const Elf64_Dyn* entry = dynamic_of(info);
  module.symbols = tables_in(entry, info.dlpi_addr);
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const auto* const table =
        reinterpret_cast<const Elf64_Rela*>(relocated(entry->d_un.d_ptr, info.dlpi_addr));  // NOLINT: ELF
    switch (entry->d_tag) {
      case DT_JMPREL:
        module.plt.entries = table;
        break;
      case DT_PLTRELSZ:
        module.plt.count = entry->d_un.d_val / sizeof(Elf64_Rela);
        break;
      case DT_RELA:
        module.other.entries = table;
        break;
      case DT_RELASZ:
        module.other.count = entry->d_un.d_val / sizeof(Elf64_Rela);
        break;
      default:
        break;
    }
  }
  return module;
}

bool stays_as_it_is(const dl_phdr_info& module) {
  const char* name = module.dlpi_name;
  for (const char* at = name; *at != 0; ++at) {
    name = *at == '/' ? at + 1 : name;
  }
  for (const char* known : {"libc.so.", "libc-2", "ld-linux", "ld-2", "libpthread", "libdl.so", "libdl-2", "librt.so",
                            "librt-2", "linux-vdso", "libcrosstalk", "libZydis", "libZycore"}) {
    if (strncmp(name, known, strlen(known)) == 0) {
      return true;
    }
  }
  return module.dlpi_addr == own_bias();
}

struct Own {
  SymbolTables symbols;
  std::uint64_t bias = 0;
};

int find_own(dl_phdr_info* module, std::size_t /*bytes*/, void* data) {
  if (module->dlpi_addr != own_bias()) {
    return 0;
  }
  *static_cast<Own*>(data) = {tables_in(dynamic_of(*module), module->dlpi_addr), module->dlpi_addr};
  return 1;
}

// The linker's bounds of functions in which threads wait: a thread that sleeps in one would keep this library in the
// process.
extern "C" __attribute__((visibility("hidden"))) const char __start_crosstalk_waits[];  // NOLINT: its names
extern "C" __attribute__((visibility("hidden"))) const char __stop_crosstalk_waits[];   // NOLINT

/// Returns the function to call instead of the one of that name; 0: none.
std::uint64_t stand_in(const Own& own, const char* name) {
  const std::uint64_t value = function_in(own.symbols, name);
  const std::uint64_t address = own.bias + value;
  const bool waits = address >= reinterpret_cast<std::uint64_t>(__start_crosstalk_waits) &&  // NOLINT: addresses
                     address < reinterpret_cast<std::uint64_t>(__stop_crosstalk_waits);      // NOLINT
  return value == 0 || waits || strncmp(name, "crosstalk_", 10) == 0 ? 0 : address;
}

void patch(const Module& module, const Elf64_Rela& relocation, const Own& own) {
  const std::uint64_t type = ELF64_R_TYPE(relocation.r_info);
  if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) {
    return;
  }
  const Elf64_Sym& symbol = module.symbols.symbols[ELF64_R_SYM(relocation.r_info)];
  const char* const name = module.symbols.strings + symbol.st_name;
  const std::uint64_t ours = stand_in(own, name);
  if (ours == 0) {
    return;
  }
  const std::uint64_t place = module.bias + relocation.r_offset;
  const std::uint64_t now = entry_at(place).load(std::memory_order_relaxed);
  const bool at_first_call = type == R_X86_64_JUMP_SLOT && now >= module.extent.begin && now < module.extent.end;
  if (now != reinterpret_cast<std::uint64_t>(next_definition(name)) && !at_first_call) {  // NOLINT: an address
    return;
  }
  if (patch_count == most_patches) {
    too_many = true;
    return;
  }
  patches[patch_count++] = {place, now, ours, module.read_only.contains(place) ? module.read_only : Range{}};
  entry_at(place).store(ours, std::memory_order_release);
}

int patch_module(dl_phdr_info* info, std::size_t /*bytes*/, void* data) {
  if (!patching.load(std::memory_order_relaxed)) {
    return 1;  // the session has ended meanwhile
  }
  if (stays_as_it_is(*info)) {
    return 0;
  }
  const Module module = described(*info);
  if (module.symbols.symbols == nullptr || module.symbols.strings == nullptr) {
    return 0;
  }
  if (!is_relocated(module.read_only)) {
    unfinished = true;
    return 0;
  }
  if (!protect(module.read_only, PROT_READ | PROT_WRITE)) {
    return 0;
  }
  for (const Relocations& part : {module.plt, module.other}) {
    for (std::size_t i = 0; part.entries != nullptr && i < part.count; ++i) {
      patch(module, part.entries[i], *static_cast<const Own*>(data));
    }
  }
  protect(module.read_only, PROT_READ);
  return 0;
}

/// True if the entry still holds our address. False if its module was unloaded since.
bool is_in_place(const Patch& patch) {
  std::uint64_t now = 0;
  return read_memory(patch.place, &now, sizeof now, kernel_process_id()) == sizeof now && now == patch.ours;
}

/// Puts the original address back. Skips unloaded modules: only our own entry holds our function's address at that
/// place.
void restore(const Patch& patch) {
  if (!is_in_place(patch) || !protect(patch.read_only, PROT_READ | PROT_WRITE)) {
    return;
  }
  entry_at(patch.place).store(patch.original, std::memory_order_release);
  protect(patch.read_only, PROT_READ);
}

int restore_all(dl_phdr_info* /*module*/, std::size_t /*bytes*/, void* /*data*/) {
  unpatch_modules_in_child();
  return 1;
}

/// Programs that load and unload the same plugins again and again must not fill the table.
int forget_unloaded(dl_phdr_info* /*module*/, std::size_t /*bytes*/, void* /*data*/) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < patch_count; ++i) {
    if (is_in_place(patches[i])) {
      patches[kept++] = patches[i];
    }
  }
  patch_count = kept;
  return 1;
}

Patched patch_all() {
  Own own;
  iterate_modules(find_own, &own);
  too_many = unfinished = false;
  iterate_modules(patch_module, &own);
  return too_many ? Patched::not_all : unfinished ? Patched::not_yet : Patched::all;
}

}  // namespace

Patched patch_modules() {
  if (patches == nullptr) {
    patches = static_cast<Patch*>(map_own_memory(most_patches * sizeof(Patch)));
  }
  if (patches == nullptr) {
    return Patched::not_all;
  }
  patching.store(true, std::memory_order_relaxed);
  return patch_new_modules();
}

Patched patch_new_modules() {
  if (!patching.load(std::memory_order_relaxed)) {
    return Patched::all;
  }
  const Patched result = patch_all();
  if (result != Patched::not_all) {
    return result;
  }
  iterate_modules(forget_unloaded, nullptr);
  return patch_all();
}

void unpatch_modules() {
  patching.store(false, std::memory_order_relaxed);
  iterate_modules(restore_all, nullptr);  // so that nothing is unloaded meanwhile
}

void unpatch_modules_in_child() {
  patching.store(false, std::memory_order_relaxed);
  for (std::size_t i = 0; i < patch_count; ++i) {
    restore(patches[i]);
  }
  patch_count = 0;
}

}  // namespace crosstalk::in_target
