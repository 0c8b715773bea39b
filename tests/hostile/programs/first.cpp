// SPDX-License-Identifier: Apache-2.0
// To be preloaded: it is initialized before all other libraries and loads one, so that glibc initializes its own
// library without an environment.
#include <dlfcn.h>

namespace {

[[gnu::constructor]] void load_another() { dlopen("libm.so.6", RTLD_NOW); }

}  // namespace
