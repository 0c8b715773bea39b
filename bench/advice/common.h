// SPDX-License-Identifier: Apache-2.0
// Shared by the programs of the advice bench: fixed work in threads that begin together.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#ifdef AS_ADVISED
#define OWN_LINE alignas(64)
inline constexpr bool as_advised = true;
#else
#define OWN_LINE
inline constexpr bool as_advised = false;
#endif

/// Makes the compiler keep a computed value and read memory anew.
template <class T>
inline void keep(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

/// Some work that touches no shared memory: `steps` dependent steps of three cycles or so.
inline std::uint64_t work(std::uint64_t seed, int steps) {
  for (int i = 0; i < steps; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
  }
  return seed;
}

/// Amount of work from the command line, in thousandths of the usual one.
inline long rounds(int count, char** arguments, long usual) {
  const long permille = count > 1 ? std::strtol(arguments[1], nullptr, 10) : 1000;
  return usual * (permille > 0 ? permille : 1000) / 1000;
}

inline void run_on(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Runs body(index) in `threads` threads that begin together.
template <class Body>
void together(unsigned threads, Body body) {
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      ready.fetch_add(1);
      while (ready.load() < threads) {
        std::this_thread::yield();
      }
      body(i);
    });
  }
  for (std::thread& thread : all) {
    thread.join();
  }
}
