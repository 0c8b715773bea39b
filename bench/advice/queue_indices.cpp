// SPDX-License-Identifier: Apache-2.0
// A ring between two threads whose indices both sides look at for every element. Advised: each side keeps a copy of the
// other's index and looks again only when the copy says full or empty; the sides have lines of their own.
#include "bench/advice/common.h"

static constexpr std::uint64_t slots = 1024;
struct Queue {
  OWN_LINE std::atomic<std::uint64_t> head{0};
  std::uint64_t seen_tail = 0;
  OWN_LINE std::atomic<std::uint64_t> tail{0};
  std::uint64_t seen_head = 0;
  OWN_LINE std::uint64_t items[slots];
};
static Queue queue;

static bool push(std::uint64_t item) {
  const std::uint64_t head = queue.head.load(std::memory_order_relaxed);
  if (!as_advised || head - queue.seen_tail == slots) {
    queue.seen_tail = queue.tail.load(std::memory_order_acquire);
  }
  if (head - queue.seen_tail == slots) {
    return false;
  }
  queue.items[head % slots] = item;
  queue.head.store(head + 1, std::memory_order_release);
  return true;
}

static bool pop(std::uint64_t& item) {
  const std::uint64_t tail = queue.tail.load(std::memory_order_relaxed);
  if (!as_advised || queue.seen_head == tail) {
    queue.seen_head = queue.head.load(std::memory_order_acquire);
  }
  if (queue.seen_head == tail) {
    return false;
  }
  item = queue.items[tail % slots];
  queue.tail.store(tail + 1, std::memory_order_release);
  return true;
}

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 20'000'000);
  std::uint64_t sum = 0;
  together(2, [&](unsigned me) {
    for (long i = 0; i < n; ++i) {
      if (me == 0) {
        while (!push(static_cast<std::uint64_t>(i))) {
        }
      } else {
        std::uint64_t item = 0;
        while (!pop(item)) {
        }
        sum += work(item, 4);
      }
    }
  });
  keep(sum);
  return 0;
}
