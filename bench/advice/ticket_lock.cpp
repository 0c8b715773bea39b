// SPDX-License-Identifier: Apache-2.0
// A ticket lock around a short update. Padded: it still waits for the other thread.
#include "bench/advice/common.h"

struct TicketLock {
  OWN_LINE std::atomic<std::uint32_t> next{0};
  OWN_LINE std::atomic<std::uint32_t> serving{0};
  void lock() {
    const std::uint32_t mine = next.fetch_add(1);
    while (serving.load(std::memory_order_acquire) != mine) {
      __builtin_ia32_pause();
    }
  }
  void unlock() { serving.store(serving.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
};
static TicketLock ticket;
alignas(64) static std::uint64_t total;

int main(int count, char** arguments) {
  const long n = rounds(count, arguments, 4'000'000);
  together(2, [&](unsigned me) {
    std::uint64_t value = me;
    for (long i = 0; i < n; ++i) {
      value = work(value, 16);
      ticket.lock();
      total += value & 7;
      ticket.unlock();
    }
  });
  keep(total);
  return 0;
}
