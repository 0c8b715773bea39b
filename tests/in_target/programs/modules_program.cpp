// SPDX-License-Identifier: Apache-2.0
// Modules that are there at the start, that dlopen loads (found by this program's $ORIGIN runpath), and that go.
#include <link.h>
#include <unistd.h>

#include <cstring>

#include "tests/in_target/guest_core.h"

thread_local int own_tls = 7;

namespace {

const auto module_at = GUEST(guest_module);

bool find_module(const char* end_of_path, GuestModule& out) {
  for (unsigned i = 0; module_at(i, &out) != 0; ++i) {
    const char* tail = strstr(out.path, end_of_path);
    if (tail != nullptr && tail[strlen(end_of_path)] == 0 && out.unloaded == 0) {
      return true;
    }
  }
  return false;
}

unsigned module_count() {
  unsigned count = 0;
  for (GuestModule module; module_at(count, &module) != 0; ++count) {
  }
  return count;
}

void at_the_start() {
  GuestModule module{};
  CHECK(find_module("/modules_program", module) && module.path[0] == '/');
  CHECK(module.begin <= reinterpret_cast<std::uint64_t>(&at_the_start) &&
        module.end > reinterpret_cast<std::uint64_t>(&at_the_start));
  CHECK(module.build_id_size == 20);
  CHECK(module.tls_size >= sizeof(int));
  std::uint64_t thread_pointer = 0;
  asm("movq %%fs:0, %0" : "=r"(thread_pointer));
  const auto tls = reinterpret_cast<std::uint64_t>(&own_tls);
  const std::uint64_t block = thread_pointer + static_cast<std::uint64_t>(module.tls_offset);
  CHECK(tls >= block && tls < block + module.tls_size);
  CHECK(find_module("/libc.so.6", module) && module.build_id_size == 20);
  bool vdso = false;
  for (unsigned i = 0; module_at(i, &module) != 0; ++i) {
    vdso = vdso || (module.is_vdso != 0 && module.path[0] == 0 && module.end > module.begin);
    for (unsigned j = 0; j < i; ++j) {
      GuestModule other{};
      CHECK(module_at(j, &other) == 1 && other.begin != module.begin);
    }
  }
  CHECK(vdso);
}

void come_and_go() {
  const unsigned before = module_count();
  void* plugin = dlopen("libin_target_plugin.so", RTLD_NOW | RTLD_LOCAL);
  CHECK(plugin != nullptr);
  void* symbol = dlsym(plugin, "plugin_allocate");
  const auto allocate = reinterpret_cast<void* (*)()>(symbol);
  GuestModule module{};
  CHECK(!find_module("/libin_target_plugin.so", module));
  GUEST(guest_note_code)(reinterpret_cast<void*>(&come_and_go));  // known code changes nothing
  std::free(allocate());
  CHECK(!find_module("/libin_target_plugin.so", module));
  GUEST(guest_note_code)(symbol);  // a sample falls into it
  void* block = allocate();        // the next allocation looks
  CHECK(find_module("/libin_target_plugin.so", module));
  CHECK(module.begin <= reinterpret_cast<std::uint64_t>(symbol) &&
        module.end > reinterpret_cast<std::uint64_t>(symbol));
  GuestBlock found{};
  CHECK(GUEST(guest_find_block)(block, &found) == 1 && found.bytes == 43);
  CHECK(found.site >= module.begin && found.site < module.end);
  std::free(block);
  CHECK(module_count() == before + 1);
  CHECK(dlclose(plugin) == 0);
  CHECK(!find_module("/libin_target_plugin.so", module));
  CHECK(module_at(before, &module) == 1 && module.unloaded == 1);
  // Came and went between two looks: dlclose looks before.
  plugin = dlopen("libin_target_plugin.so", RTLD_NOW);
  CHECK(plugin != nullptr && dlclose(plugin) == 0);
  CHECK(module_count() == before + 2 && module_at(before + 1, &module) == 1 && module.unloaded == 1);
}

void what_dl_functions_say() {
  CHECK(dlopen("/nonexistent.so", RTLD_NOW) == nullptr);
  std::free(std::malloc(100));
  const char* message = dlerror();  // not disturbed by our own look-ups
  CHECK(message != nullptr && strstr(message, "nonexistent") != nullptr);
}

}  // namespace

int main() {
  at_the_start();
  come_and_go();
  what_dl_functions_say();
  return own_tls == 7 ? 0 : 1;
}
