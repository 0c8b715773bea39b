// SPDX-License-Identifier: Apache-2.0
// Two locks that are never contended lie on one line. Advised: a line each.
#include <mutex>

#include "bench/advice/common.h"

struct OWN_LINE Shelf {
  std::mutex lock;
  std::uint64_t items = 0;
};
static Shelf shelves[2];

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 12'000'000);
  together(2, [&](unsigned me) {
    for (long i = 0; i < n; ++i) {
      const std::lock_guard<std::mutex> held(shelves[me].lock);
      shelves[me].items += static_cast<std::uint64_t>(i);
    }
  });
  return 0;
}
