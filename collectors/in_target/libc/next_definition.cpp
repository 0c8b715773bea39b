// SPDX-License-Identifier: Apache-2.0
#include <link.h>
#include <sys/auxv.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "collectors/in_target/libc/dynamic_symbols.h"
#include "collectors/in_target/libc/real_functions.h"

extern "C" const char __ehdr_start __attribute__((visibility("hidden")));  // NOLINT: the linker's name

namespace crosstalk::in_target {
namespace {

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
  const std::uint64_t value = function_in(tables_in(dynamic_of(*module), module->dlpi_addr), query.name);
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

// We interpose it, too, so it cannot find itself. Reads the loader's list without its lock: the first call is before
// there are other threads.
Iterate* find_iterate() {
  std::uint64_t before_own = 0;
  std::uint64_t behind_own = 0;
  bool past_own = false;
  for (const link_map* module = _r_debug.r_map; module != nullptr && behind_own == 0; module = module->l_next) {
    if (module->l_addr == own_bias()) {
      past_own = true;
      continue;
    }
    const std::uint64_t value = function_in(tables_in(module->l_ld, module->l_addr), "dl_iterate_phdr");
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
