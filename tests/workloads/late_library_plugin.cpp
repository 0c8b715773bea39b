// SPDX-License-Identifier: Apache-2.0
// Of late_library.cpp.
#include <cstdlib>

extern "C" unsigned long* late_block() {
  auto* const block = static_cast<unsigned long*>(std::malloc(64));
  if (block != nullptr) {
    __atomic_store_n(block, 1, __ATOMIC_RELAXED);  // so that the call is no jump, which would return to the caller
  }
  return block;
}
