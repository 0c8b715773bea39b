// SPDX-License-Identifier: Apache-2.0
// All threads count in one counter. Advised: a counter a thread, added up at the end.
#include "bench/advice/common.h"

struct alignas(64) Shard {
  std::atomic<std::uint64_t> value{0};
};
static Shard requests[2];

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 30'000'000);
  together(2, [&](unsigned me) {
    std::uint64_t value = me;
    for (long i = 0; i < n; ++i) {
      value = work(value, 8);
      requests[as_advised ? me : 0].value.fetch_add(value & 3, std::memory_order_relaxed);
    }
  });
  return 0;
}
