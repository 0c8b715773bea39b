// SPDX-License-Identifier: Apache-2.0
// Cost of the interposed allocation functions. Run it alone and with libcrosstalk.so (or the tests' guest) in
// LD_PRELOAD; the difference is the cost. Prints nanoseconds of thread CPU time per malloc + free: the median and the
// best of many short runs, because on a busy machine only short runs are undisturbed.
//
//   same      one size, freed at once: the allocator's fastest path
//   mixed     sizes 16..2047, freed at once
//   window    sizes 16..527, 4096 blocks alive, the oldest freed first
//   threads   window in two threads; the slower
//   large     as window with 65536 blocks alive, which exceeds the table
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int runs = 201;
constexpr std::size_t rounds = 50'000;

struct Cost {
  double median_ns = 0;
  double best_ns = 0;
};

std::uint64_t next_random(std::uint64_t& s) {
  s ^= s << 13U;
  s ^= s >> 7U;
  s ^= s << 17U;
  return s;
}

double thread_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

template <class Body>
Cost cost_of(Body body) {
  std::vector<double> each(runs);
  for (double& ns : each) {
    const double begin = thread_cpu_ns();
    body();
    ns = (thread_cpu_ns() - begin) / static_cast<double>(rounds);
  }
  std::sort(each.begin(), each.end());
  return {each[runs / 2], each[0]};
}

void keep(void* block) { asm volatile("" ::"r"(block) : "memory"); }

Cost same() {
  return cost_of([] {
    for (std::size_t i = 0; i < rounds; ++i) {
      void* block = std::malloc(64);
      keep(block);
      std::free(block);
    }
  });
}

Cost mixed() {
  return cost_of([] {
    std::uint64_t seed = 42;
    for (std::size_t i = 0; i < rounds; ++i) {
      void* block = std::malloc(16 + next_random(seed) % 2032);
      keep(block);
      std::free(block);
    }
  });
}

Cost window(std::size_t alive) {
  std::vector<void*> blocks(alive, nullptr);
  const Cost cost = cost_of([&] {
    std::uint64_t seed = 42;
    for (std::size_t i = 0; i < rounds; ++i) {
      void*& block = blocks[i % alive];
      std::free(block);
      block = std::malloc(16 + next_random(seed) % 512);
      keep(block);
    }
  });
  for (void* block : blocks) {
    std::free(block);
  }
  return cost;
}

Cost two_threads() {
  Cost other;
  std::thread second([&] { other = window(4096); });
  const Cost own = window(4096);
  second.join();
  return own.median_ns < other.median_ns ? other : own;
}

void print(const char* name, Cost cost) {
  std::printf("%-8s %7.2f ns, best %7.2f\n", name, cost.median_ns, cost.best_ns);
}

}  // namespace

int main() {
  print("same", same());
  print("mixed", mixed());
  print("window", window(4096));
  print("large", window(65536));
  print("threads", two_threads());
}
