// SPDX-License-Identifier: Apache-2.0
// Loops whose loads, stores, bytes and flops an iteration are known, as the instructions are spelled out. They run
// `rounds` iterations in main and as many in a second thread: the emulator translates atomics in another way once there
// are threads.
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace {

alignas(64) double source[64];
alignas(64) double target[64];
alignas(64) unsigned char bytes[64];
alignas(64) std::uint64_t words[8];

/// 2 loads of 8 bytes, 1 store of 8, 2 flops.
[[gnu::noinline]] void scalar_triad(long rounds) {
  for (long n = 0; n < rounds; ++n) {
    asm volatile("movsd (%0), %%xmm0\n mulsd %%xmm0, %%xmm0\n addsd 8(%0), %%xmm0\n movsd %%xmm0, (%1)" ::"r"(source),
                 "r"(target)
                 : "xmm0", "memory");
  }
}

/// 2 loads of 32 bytes, 1 store of 32, 8 flops.
[[gnu::noinline]] void wide_fma(long rounds) {
  for (long n = 0; n < rounds; ++n) {
    asm volatile("vmovupd 16(%0), %%ymm0\n vfmadd231pd (%0), %%ymm0, %%ymm0\n vmovupd %%ymm0, 8(%1)" ::"r"(source),
                 "r"(target)
                 : "xmm0", "memory");
  }
}

/// 1 load and 1 store of 16 bytes, 8 flops.
[[gnu::noinline]] void packed_single(long rounds) {
  for (long n = 0; n < rounds; ++n) {
    asm volatile(
        "movups 4(%0), %%xmm1\n mulps %%xmm1, %%xmm1\n maxps %%xmm1, %%xmm1\n movaps %%xmm1, (%1)" ::"r"(source),
        "r"(target)
        : "xmm1", "memory");
  }
}

/// 4 loads and 4 stores of 8 bytes: three atomic read-modify-writes and one that is not.
[[gnu::noinline]] void modify(long rounds) {
  for (long n = 0; n < rounds; ++n) {
    std::uint64_t one = 1, expected = 0;
    asm volatile("lock incq (%2)\n lock xaddq %0, 8(%2)\n lock cmpxchgq %0, 16(%2)\n addq $1, 24(%2)"
                 : "+r"(one), "+a"(expected)
                 : "r"(words)
                 : "memory");
  }
}

/// 1 load and 1 store of 16 bytes.
[[gnu::noinline]] void exchange_wide(long rounds) {
  for (long n = 0; n < rounds; ++n) {
    std::uint64_t low = 0, high = 0;
    asm volatile("lock cmpxchg16b (%2)" : "+a"(low), "+d"(high) : "r"(words), "b"(low), "c"(high) : "memory");
  }
}

/// 16 loads and 16 stores of 1 byte, and a push and a pop: a store and a load of 8.
[[gnu::noinline]] void copy_bytes(long rounds) {
  for (long n = 0; n < rounds; ++n) {
    const unsigned char* from = bytes;
    unsigned char* to = bytes + 32;
    std::uint64_t count = 16;
    asm volatile("push %%rax\n pop %%rax\n rep movsb" : "+S"(from), "+D"(to), "+c"(count)::"memory");
  }
}

/// 1 load and 1 store of 10 bytes, 1 flop.
[[gnu::noinline]] void extended(long rounds) {
  for (long n = 0; n < rounds; ++n) {
    asm volatile("fldt (%0)\n fadd %%st(0)\n fstpt 16(%0)" ::"r"(target) : "st", "memory");
  }
}

void work(long rounds) {
  scalar_triad(rounds);
  wide_fma(rounds);
  packed_single(rounds);
  modify(rounds);
  exchange_wide(rounds);
  copy_bytes(rounds);
  extended(rounds);
}

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  work(rounds);
  std::thread(work, rounds).join();
}
