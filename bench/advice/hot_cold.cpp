// SPDX-License-Identifier: Apache-2.0
// One thread updates a statistic that lies beside what all look up. Advised: the statistic has a line of its own.
#include "bench/advice/common.h"

struct Cache {
  std::uint64_t mask = 1023;
  const std::uint64_t* table = nullptr;
  OWN_LINE std::uint64_t updates = 0;
};
static Cache cache;
static std::uint64_t entries[1024];

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 60'000'000);
  cache.table = entries;
  together(2, [&](unsigned me) {
    if (me == 0) {
      for (long i = 0; i < n / 8; ++i) {
        ++cache.updates;
        keep(cache.updates);
        std::uint64_t pause = work(me, 20);
        keep(pause);
      }
      return;
    }
    std::uint64_t found = 0;
    for (long i = 0; i < n; ++i) {
      keep(cache);
      found += cache.table[(found + static_cast<std::uint64_t>(i)) & cache.mask];
    }
    keep(found);
  });
  return 0;
}
