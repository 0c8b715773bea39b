// SPDX-License-Identifier: Apache-2.0
// One thread spins until the other has worked. Padded: it spins as long.
#include "bench/advice/common.h"

struct State {
  OWN_LINE std::atomic<std::uint64_t> step{0};
  OWN_LINE std::uint64_t payload = 0;
};
static State state;

int main(int count, char** arguments) {
  const std::uint64_t n = static_cast<std::uint64_t>(rounds(count, arguments, 40'000));
  together(2, [&](unsigned me) {
    for (std::uint64_t i = 1; i <= n; ++i) {
      if (me == 0) {
        state.payload = work(state.payload, 40'000);
        state.step.store(i, std::memory_order_release);
      } else {
        while (state.step.load(std::memory_order_acquire) < i) {
          __builtin_ia32_pause();
        }
      }
    }
  });
  return 0;
}
