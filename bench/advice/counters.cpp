// SPDX-License-Identifier: Apache-2.0
// Each thread counts in an atomic counter of its own; the counters are neighbours. Advised: a line each.
#include "bench/advice/common.h"

struct OWN_LINE Counter {
  std::atomic<std::uint64_t> hits{0};
};
static Counter counters[2];

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 40'000'000);
  together(2, [&](unsigned me) {
    for (long i = 0; i < n; ++i) {
      counters[me].hits.fetch_add(1, std::memory_order_relaxed);
    }
  });
  return counters[0].hits + counters[1].hits == static_cast<std::uint64_t>(2 * n) ? 0 : 1;
}
