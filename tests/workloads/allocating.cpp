// SPDX-License-Identifier: Apache-2.0
// allocating WHAT THREADS WARM ROUNDS: a program that does little but allocate. Runs WARM rounds, then ROUNDS rounds in
// each thread, and prints the CPU seconds that the latter took.
//
//   map    fills a std::map<std::string, int> with 20000 keys, looks each up, and destroys it
//   churn  200000 pairs of malloc(32) and free()
//   share  fills maps of 500 keys, and counts in two blocks that all threads share: one of 52 bytes, allocated before
//   all
//          else, and one of 53, after a thread's warming, where other blocks have been
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

double thread_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void fill_map(std::uint64_t& sum, std::uint64_t keys) {
  std::map<std::string, int> map;
  for (std::uint64_t i = 0; i < keys; ++i) {
    map["a key that needs memory of its own " + std::to_string(i * 7919 % keys)] = static_cast<int>(i);
  }
  for (const auto& [key, value] : map) {
    sum += key.size() + static_cast<std::uint64_t>(value);
  }
}

void fill_map(std::uint64_t& sum) { fill_map(sum, 20'000); }

void churn(std::uint64_t& sum) {
  for (int i = 0; i < 200'000; ++i) {
    void* block = std::malloc(32);
    asm volatile("" : "+r"(block)::"memory");
    sum += reinterpret_cast<std::uintptr_t>(block) & 15U;  // NOLINT: keeps it
    std::free(block);
  }
}

using Counter = std::atomic<std::uint64_t>;
__attribute__((noinline)) Counter* early_counter() { return new (std::malloc(52)) Counter(0); }
__attribute__((noinline)) Counter* late_counter() { return new (std::malloc(53)) Counter(0); }

Counter* early = nullptr;
std::atomic<Counter*> late{nullptr};

void share(std::uint64_t& sum) {
  for (int i = 0; i < 20; ++i) {
    fill_map(sum, 500);
  }
  Counter* const second = late.load();
  for (int i = 0; i < 200'000; ++i) {
    early->fetch_add(1, std::memory_order_relaxed);
    if (second != nullptr) {
      second->fetch_add(1, std::memory_order_relaxed);
    }
  }
}

using Round = void (*)(std::uint64_t&);

double run(Round round, int warm, int rounds) {
  std::uint64_t sum = 0;
  for (int i = 0; i < warm; ++i) {
    round(sum);
  }
  Counter* none = nullptr;
  Counter* const mine = late_counter();
  if (!late.compare_exchange_strong(none, mine)) {
    std::free(mine);
  }
  const double begin = thread_cpu_s();
  for (int i = 0; i < rounds; ++i) {
    round(sum);
  }
  asm volatile("" ::"r"(sum));
  return thread_cpu_s() - begin;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "allocating: usage: allocating map|churn|share THREADS WARM ROUNDS\n");
    return 2;
  }
  const Round round = std::strcmp(argv[1], "map") == 0     ? static_cast<Round>(fill_map)
                      : std::strcmp(argv[1], "share") == 0 ? share
                                                           : churn;
  early = early_counter();
  const int warm = std::atoi(argv[3]);
  const int rounds = std::atoi(argv[4]);
  std::vector<double> took(static_cast<std::size_t>(std::atoi(argv[2])));
  std::vector<std::thread> threads;
  for (double& one : took) {
    threads.emplace_back([&one, round, warm, rounds] { one = run(round, warm, rounds); });
  }
  double all = 0;
  for (std::size_t i = 0; i < took.size(); ++i) {
    threads[i].join();
    all += took[i];
  }
  std::printf("%.6f\n", all);
}
