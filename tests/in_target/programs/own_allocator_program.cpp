// SPDX-License-Identifier: Apache-2.0
// A program with its own operator new and its own malloc: they are used, known or unknown to us, and never mixed with
// others.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "tests/in_target/guest_core.h"

namespace {
alignas(64) char arena[1 << 20];
std::size_t used = 0;
int live = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  used = (used + 63) / 64 * 64;
  void* block = arena + used;
  used += bytes;
  ++live;
  return block;
}
void operator delete(void* block) noexcept {
  const auto* p = static_cast<char*>(block);
  CHECK(block == nullptr || (p >= arena && p < arena + sizeof(arena)));
  live -= block == nullptr ? 0 : 1;
}
void operator delete(void* block, std::size_t /*bytes*/) noexcept { operator delete(block); }

int main() {
  {
    std::string text(100, 'x');  // libstdc++'s own code allocates by our operator
    text += std::string(1000, 'y');
    auto* one = new int(3);
    delete one;
  }
  CHECK(live == 0 && used > 1000);
  void* block = std::malloc(100);
  GuestBlock found{};
  CHECK(GUEST(guest_find_block)(block, &found) == 1 && found.bytes == 100);
  std::free(block);
  return 0;
}
