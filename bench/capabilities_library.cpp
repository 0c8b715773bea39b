// SPDX-License-Identifier: Apache-2.0
#include <atomic>

alignas(64) std::atomic<unsigned long> words[8];

/// Counts in a word of a line that others count in, too, until the process is killed. Plain loads and stores: a locked
/// instruction does not trap in an emulated processor.
[[gnu::noinline]] void share_a_line(int word) {
  while (true) {
    words[word].store(words[word].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}
