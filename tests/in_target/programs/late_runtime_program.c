// SPDX-License-Identifier: Apache-2.0
// A C program whose plugin loads the C++ runtime in a scope of its own: `new` finds the real one there.
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  if (dlsym(RTLD_DEFAULT, "__cxa_throw") != NULL) {
    fprintf(stderr, "late_runtime_program: the C++ runtime is there already\n");
    return 3;
  }
  void* plugin = dlopen("libin_target_runtime_plugin.so", RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    fprintf(stderr, "late_runtime_program: %s\n", dlerror());
    return 4;
  }
  int (*use)(void) = NULL;
  *(void**)&use = dlsym(plugin, "plugin_uses_the_runtime");
  return use == NULL ? 5 : use();
}
