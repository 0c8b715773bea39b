// SPDX-License-Identifier: Apache-2.0
// Large objects whose parts are mostly never used.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <new>
#include <type_traits>

namespace crosstalk {

struct Unmap {
  template <class T>
  void operator()(T* object) const {
    ::munmap(object, sizeof(T));
  }
};
template <class T>
using Zeroed = std::unique_ptr<T, Unmap>;

/// Returns an object all of whose bytes are 0, as in static storage: no constructor runs, so its pages take no memory
/// until something is written there. T's initial state must be that. Throws std::bad_alloc.
template <class T>
[[nodiscard]] Zeroed<T> make_zeroed() {
  static_assert(std::is_trivially_destructible_v<T>);
  void* const memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return Zeroed<T>(static_cast<T*>(memory));
}

}  // namespace crosstalk
