// SPDX-License-Identifier: Apache-2.0
// Neighbouring counters of two threads that run on one processor. Padded: nothing changes.
#include "bench/advice/common.h"

struct OWN_LINE Counter {
  std::atomic<std::uint64_t> hits{0};
};
static Counter counters[2];

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 200'000'000);
  run_on(0);
  together(2, [&](unsigned me) {
    for (long i = 0; i < n; ++i) {
      counters[me].hits.fetch_add(1, std::memory_order_relaxed);
    }
  });
  return 0;
}
