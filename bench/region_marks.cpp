// SPDX-License-Identifier: Apache-2.0
// region_marks COUNT DEPTH: begins and ends a region COUNT times, within DEPTH - 1 others, and prints nanoseconds for
// each.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "include/crosstalk/region.h"

int main(int argc, char** argv) {
  const long count = argc > 2 ? std::atol(argv[1]) : 1;
  const long depth = argc > 2 ? std::atol(argv[2]) : 1;
  for (long i = 1; i < depth; ++i) {
    crosstalk_begin("around");
  }
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (long i = 0; i < count; ++i) {
    crosstalk_begin("marked");
    crosstalk_end();
    __asm__ volatile("" ::: "memory");
  }
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  std::printf("%.2f\n", took.count() / static_cast<double>(count));
  return 0;
}
