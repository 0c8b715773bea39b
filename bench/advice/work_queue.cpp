// SPDX-License-Identifier: Apache-2.0
// Threads take one item at a time by a common counter. Advised: take 64 at a time.
#include "bench/advice/common.h"

static std::atomic<long> next_item{0};

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 40'000'000);
  constexpr long batch = as_advised ? 64 : 1;
  together(2, [&](unsigned me) {
    std::uint64_t value = me;
    for (;;) {
      const long first = next_item.fetch_add(batch, std::memory_order_relaxed);
      if (first >= n) {
        break;
      }
      for (long k = 0; k < batch; ++k) {
        value = work(value ^ static_cast<std::uint64_t>(first + k), 12);
      }
    }
    keep(value);
  });
  return 0;
}
