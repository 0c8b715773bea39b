// SPDX-License-Identifier: Apache-2.0
// One thread writes a message and the other reads it. Padded: the data moves anyway.
#include "bench/advice/common.h"

struct Message {
  OWN_LINE std::atomic<std::uint64_t> sequence{0};
  OWN_LINE std::uint64_t words[6];
  OWN_LINE std::atomic<std::uint64_t> read{0};
};
static Message message;

int main(int count, char** arguments) {
  const std::uint64_t n = static_cast<std::uint64_t>(rounds(count, arguments, 6'000'000));
  std::uint64_t sum = 0;
  together(2, [&](unsigned me) {
    for (std::uint64_t i = 1; i <= n; ++i) {
      if (me == 0) {
        while (message.read.load(std::memory_order_acquire) != i - 1) {
        }
        for (std::uint64_t& word : message.words) {
          word = i;
        }
        message.sequence.store(i, std::memory_order_release);
      } else {
        while (message.sequence.load(std::memory_order_acquire) != i) {
        }
        for (const std::uint64_t& word : message.words) {
          sum += word;
        }
        message.read.store(i, std::memory_order_release);
      }
    }
  });
  keep(sum);
  return 0;
}
