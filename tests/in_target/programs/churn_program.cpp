// SPDX-License-Identifier: Apache-2.0
// Allocates and frees in several threads with every pair of functions, with any allocator behind them. `seen` or
// `unseen`: tells if its blocks must be known.
#include <malloc.h>

#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/in_target/guest_core.h"

namespace {

void churn() {
  std::map<int, std::string> map;
  for (int i = 0; i < 3000; ++i) {
    map[i] = std::string(static_cast<std::size_t>(i) % 300, 'x');
    void* block = std::malloc(static_cast<std::size_t>(i));
    block = std::realloc(block, static_cast<std::size_t>(i) * 2 + 1);
    CHECK(malloc_usable_size(block) >= static_cast<std::size_t>(i) * 2 + 1);
    memset(block, 1, static_cast<std::size_t>(i) * 2 + 1);
    std::free(block);
    std::free(memalign(64, 100));
    std::free(std::calloc(3, 5));
  }
}

}  // namespace

int main(int /*argc*/, char** argv) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(churn);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  char* block = new char[12345];
  GuestBlock found{};
  const bool known = GUEST(guest_find_block)(block, &found) == 1 && found.bytes == 12345;
  delete[] block;
  CHECK(known == (std::string(argv[1]) == "seen"));
  return 0;
}
