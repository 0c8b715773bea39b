// SPDX-License-Identifier: Apache-2.0
// Threads work on memory of their own, each block in pages of its own: no communication at all.
#include <cstdlib>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;
using workload::Truth;

constexpr std::size_t page_bytes = 4096;

void add_up(std::uint64_t* block, std::size_t words, const Deadline& deadline) {
  while (!deadline.passed()) {
    for (std::size_t i = 0; i < words; ++i) {
      block[i] += i;
    }
    __asm__ volatile("" ::: "memory");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("private_only", "threads work on memory of their own");
  flags.number("--threads", 2, 1, 64, "threads").number("--seconds", 3, 0.01, 3600, "run time");
  flags.number("--kib", 256, 4, 1U << 20U, "size of each thread's block");
  flags.parse(argc, argv);
  const int threads = flags.integer("--threads");
  const std::size_t bytes = static_cast<std::size_t>(flags.integer("--kib")) * 1024;

  const Deadline deadline(flags.real("--seconds"));
  workload::run_crew(threads, [&](int) {
    void* block = std::aligned_alloc(page_bytes, bytes);
    if (block != nullptr) {
      add_up(static_cast<std::uint64_t*>(block), bytes / sizeof(std::uint64_t), deadline);
    }
    std::free(block);
  });
  Truth truth("private_only", threads + 1);
  truth.print(deadline.elapsed());
}
