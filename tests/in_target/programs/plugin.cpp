// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
thread_local int per_thread = 41;
extern "C" void* plugin_allocate() {
  void* volatile block = std::malloc(static_cast<std::size_t>(++per_thread));  // a call, not a tail jump
  return block;
}
