// SPDX-License-Identifier: Apache-2.0
// Loops that tell an emulated unit, in register r15, what to count in them (modules/emulated_pmu, counting.c): one that
// computes, one that waits for memory, in turns that are long beside a sampling period; and a third whose visits are
// short. Prints the truth of each.
//
//   counted_phases [seconds=12]
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

/// As counting.c takes it apart: a mark, how many of 16 instructions are branches, then what happens in 1024 cycles.
struct Truth {
  const char* name;
  std::uint64_t branches, stalls, misses, fills, loads, instructions;
  [[nodiscard]] constexpr std::uint64_t word() const {
    return std::uint64_t{0xc7} << 56U | branches << 52U | stalls << 42U | misses << 32U | fills << 22U | loads << 12U |
           instructions;
  }
};
constexpr Truth computes{"computes", 2, 0, 0, 1, 640, 3072};
constexpr Truth waits{"waits", 5, 900, 40, 64, 128, 256};

// Loops of their own functions, so that each is one by name.
[[gnu::noinline, gnu::noclone]] void computes_loop(std::uint64_t iterations) {
  asm volatile(
      "movq %[truth], %%r15\n"
      "1: addq $3, %%rax\n"
      "imulq $5, %%rax, %%rdx\n"
      "decq %[left]\n"
      "jnz 1b\n"
      : [left] "+r"(iterations)
      : [truth] "r"(computes.word())
      : "rax", "rdx", "r15", "cc");
}

[[gnu::noinline, gnu::noclone]] void waits_loop(std::uint64_t iterations) {
  asm volatile(
      "movq %[truth], %%r15\n"
      "2: addq $1, %%rax\n"
      "xorq %%rax, %%rdx\n"
      "decq %[left]\n"
      "jnz 2b\n"
      : [left] "+r"(iterations)
      : [truth] "r"(waits.word())
      : "rax", "rdx", "r15", "cc");
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void print(const Truth& truth, bool last) {
  const auto part = [](std::uint64_t of) { return static_cast<double>(of) / 1024; };
  std::printf(
      "\"%s\": {\"ipc\": %.6f, \"branches\": %.6f, \"loads\": %.6f, \"l1d_fills\": %.6f, \"l3_misses\": %.6f, "
      "\"stalls\": %.6f}%s",
      truth.name, part(truth.instructions), part(truth.instructions * truth.branches / 16), part(truth.loads),
      part(truth.fills), part(truth.misses), part(truth.stalls), last ? "" : ", ");
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 12;
  constexpr double turn_s = 1.5;
  constexpr std::uint64_t some = 200'000;  // iterations between two looks at the clock
  const double end_s = now_s() + seconds;
  while (now_s() < end_s) {
    for (const double until = now_s() + turn_s; now_s() < until;) {
      computes_loop(some);
    }
    for (const double until = now_s() + turn_s; now_s() < until;) {
      waits_loop(some);
    }
  }
  std::printf("{\"cycles_per_s\": 1e9, ");
  print(computes, false);
  print(waits, true);
  std::printf("}\n");
  return 0;
}
