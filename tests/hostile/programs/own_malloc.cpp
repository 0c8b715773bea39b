// SPDX-License-Identifier: Apache-2.0
// A program with an allocator of its own, which must not be called recursively and has one block for each request:
// foreign requests would be noticed.
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "hostile.h"

namespace {

std::atomic<int> requests{0};
std::atomic<int> reentered{0};
std::atomic<std::size_t> used{0};
__thread int inside = 0;
constexpr std::size_t arena_bytes = std::size_t{64} << 20U;
alignas(4096) char arena[arena_bytes];

/// Blocks have their size before them and are never given back.
void* take(std::size_t bytes, std::size_t alignment) {
  reentered += inside++ != 0 ? 1 : 0;
  ++requests;
  for (int n = 0; n < 200; ++n) {
    asm volatile("");
  }
  const std::size_t step = std::max<std::size_t>(alignment, 16);
  const std::size_t begin = used.fetch_add(bytes + 2 * step);
  --inside;
  if (begin + bytes + 2 * step > arena_bytes) {
    errno = ENOMEM;
    return nullptr;
  }
  const auto at = (reinterpret_cast<std::uintptr_t>(arena) + begin + step + step - 1) / step * step;
  std::memcpy(reinterpret_cast<void*>(at - sizeof bytes), &bytes, sizeof bytes);
  return reinterpret_cast<void*>(at);
}

}  // namespace

extern "C" {
void* malloc(std::size_t bytes) { return take(bytes, 16); }
void* calloc(std::size_t count, std::size_t bytes) { return take(count * bytes, 16); }  // fresh memory is zero
void free(void*) {}
void* memalign(std::size_t alignment, std::size_t bytes) { return take(bytes, alignment); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return take(bytes, alignment); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  *out = take(bytes, alignment);
  return *out == nullptr ? ENOMEM : 0;
}
void* realloc(void* old, std::size_t bytes) {
  void* fresh = take(bytes, 16);
  if (old != nullptr && fresh != nullptr) {
    std::size_t before = 0;
    std::memcpy(&before, static_cast<char*>(old) - sizeof before, sizeof before);
    std::memcpy(fresh, old, std::min(before, bytes));
  }
  return fresh;
}
}

int main() {
  hostile::exchange(0.1);
  const int before = requests;
  hostile::burn(0.3);
  const int meanwhile = requests - before;
  std::thread threads[2];
  for (std::thread& thread : threads) {
    thread = std::thread([] {
      for (int n = 0; n < 30'000; ++n) {
        void* block = std::malloc(100);
        __atomic_store_n(&hostile::shared_line.words[0], reinterpret_cast<std::uintptr_t>(block), __ATOMIC_RELAXED);
        std::free(block);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  hostile::say("requests that are not the program's: %d, re-entered %d times", meanwhile, reentered.load());
  return 0;
}
