// SPDX-License-Identifier: Apache-2.0
// A library is loaded while the program has long been running; from then on two threads share blocks that the library
// allocates, a new one some twenty times a second. Prints their number.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "workload.h"

namespace {

using workload::Deadline;
using workload::Flags;

std::string beside_this_program(const char* name) {
  char path[4096] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  const std::string text(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return text.substr(0, text.rfind('/') + 1) + name;
}

using Allocate = unsigned long* (*)();

/// Stores to the thread's own word of the block for so long.
void use(unsigned long* block, int word, double seconds) {
  const Deadline turn(seconds);
  for (unsigned long n = 1; (n & 0x3ffU) != 0 || !turn.passed(); ++n) {
    __atomic_store_n(&block[word], n, __ATOMIC_RELAXED);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("late_library", "two threads share what a library has allocated that was loaded late");
  flags.number("--seconds", 6, 0.1, 3600, "run time").number("--delay", 2, 0, 3600, "before the library is loaded");
  flags.parse(argc, argv);
  const Deadline deadline(flags.real("--seconds"));
  alignas(64) static unsigned long before[8];
  use(before, 0, flags.real("--delay"));
  void* library = dlopen(beside_this_program("liblate_library.so").c_str(), RTLD_NOW);
  const auto allocate = library == nullptr ? nullptr : reinterpret_cast<Allocate>(dlsym(library, "late_block"));
  if (allocate == nullptr) {
    flags.refuse("there is no library");
  }
  int blocks = 0;
  for (; !deadline.passed(); ++blocks) {
    constexpr double turn_s = 0.05;
    unsigned long* block = allocate();
    std::thread other(use, block, 1, turn_s);
    use(block, 0, turn_s);
    other.join();
  }
  std::printf("{\"blocks\": %d}\n", blocks);
  return 0;
}
