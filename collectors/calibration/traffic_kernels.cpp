// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/traffic_kernels.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Traffic;
using models::Width;

// A round is eight vectors of SIZE bytes; the narrower ones take two or four rounds for `traffic_round_bytes`. Pointers
// stand at the arrays' ends and the index counts up to 0, which needs no comparison.
// NOLINTBEGIN(bugprone-macro-parentheses): pieces of strings
#define CROSSTALK_EIGHT(STEP, OP, SIZE, R) \
  STEP(0, OP, SIZE, R)                     \
  STEP(1, OP, SIZE, R)                     \
  STEP(2, OP, SIZE, R)                     \
  STEP(3, OP, SIZE, R) STEP(4, OP, SIZE, R) STEP(5, OP, SIZE, R) STEP(6, OP, SIZE, R) STEP(7, OP, SIZE, R)

#define CROSSTALK_XOR_2(N, OP, SIZE, R) OP " " SIZE "*" #N "(%[b],%[i]), %%" R #N "\n"
#define CROSSTALK_XOR_3(N, OP, SIZE, R) OP " " SIZE "*" #N "(%[b],%[i]), %%" R #N ", %%" R #N "\n"
#define CROSSTALK_FROM_B(N, OP, SIZE, R) OP " " SIZE "*" #N "(%[b],%[i]), %%" R #N "\n"
#define CROSSTALK_FROM_C(N, OP, SIZE, R) OP " " SIZE "*" #N "(%[c],%[i]), %%" R #N "\n"
#define CROSSTALK_SCALE(N, OP, SIZE, R) OP " %%" R "15, %%" R #N "\n"
#define CROSSTALK_FMA_B(N, OP, SIZE, R) OP " " SIZE "*" #N "(%[b],%[i]), %%" R "15, %%" R #N "\n"
#define CROSSTALK_TO_A(N, OP, SIZE, R) OP " %%" R #N ", " SIZE "*" #N "(%[a],%[i])\n"
#define CROSSTALK_SAME_TO_A(N, OP, SIZE, R) OP " %%" R "15, " SIZE "*" #N "(%[a],%[i])\n"
// The form of AVX clears the whole of a wider register, which the one of SSE does not.
#define CROSSTALK_ZERO_2(N, OP, SIZE, R) "pxor %%xmm" #N ", %%xmm" #N "\n"
#define CROSSTALK_ZERO_3(N, OP, SIZE, R) "vpxor %%xmm" #N ", %%xmm" #N ", %%xmm" #N "\n"

#define CROSSTALK_PASSES(BODY, SIZE) \
  "0:\nmov %[start], %[i]\n.p2align 5\n1:\n" BODY "add $8*" SIZE ", %[i]\njnz 1b\ndec %[passes]\njnz 0b\n"

// BODY is a round; AFTER stands behind the loop.
#define CROSSTALK_TRAFFIC_KERNEL(NAME, MOVE, SIZE, R, BODY, AFTER)                                                 \
  void NAME(const TrafficArrays& arrays, std::uint64_t passes, Checksum&) {                                        \
    const Checksum scale = repeated(arrays.scale);                                                                 \
    const auto start = -static_cast<std::int64_t>(arrays.bytes);                                                   \
    std::int64_t i = 0;                                                                                            \
    asm volatile(MOVE " (%[scale]), %%" R "15\n" CROSSTALK_PASSES(BODY, SIZE) AFTER                                \
                 : [i] "+r"(i), [passes] "+r"(passes)                                                              \
                 : [start] "r"(start), [a] "r"(end(arrays.a, arrays.bytes)), [b] "r"(end(arrays.b, arrays.bytes)), \
                   [c] "r"(end(arrays.c, arrays.bytes)), [scale] "r"(scale.data())                                 \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm15");       \
  }

// Eight vectors are gathered, each in a register, and folded into one at the end.
#define CROSSTALK_LOAD_KERNEL(NAME, ZERO, STEP, OP, SIZE, R, FOLD, STORE)                                     \
  void NAME(const TrafficArrays& arrays, std::uint64_t passes, Checksum& checksum) {                          \
    const auto start = -static_cast<std::int64_t>(arrays.bytes);                                              \
    std::int64_t i = 0;                                                                                       \
    Checksum sum{};                                                                                           \
    asm volatile(CROSSTALK_EIGHT(ZERO, "", "", "") CROSSTALK_PASSES(CROSSTALK_EIGHT(STEP, OP, SIZE, R), SIZE) \
                     FOLD STORE                                                                               \
                 : [i] "+r"(i), [passes] "+r"(passes)                                                         \
                 : [start] "r"(start), [b] "r"(end(arrays.b, arrays.bytes)), [sum] "r"(sum.data())            \
                 : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");           \
    for (std::size_t word = 0; word < sum.size(); ++word) {                                                   \
      checksum[word] ^= sum[word];                                                                            \
    }                                                                                                         \
  }

#define CROSSTALK_FOLD_2(OP, R)                                                                                  \
  OP " %%" R "1, %%" R "0\n" OP " %%" R "3, %%" R "2\n" OP " %%" R "5, %%" R "4\n" OP " %%" R "7, %%" R "6\n" OP \
     " %%" R "2, %%" R "0\n" OP " %%" R "6, %%" R "4\n" OP " %%" R "4, %%" R "0\n"
#define CROSSTALK_FOLD_3(OP, R)                                                                                     \
  OP " %%" R "1, %%" R "0, %%" R "0\n" OP " %%" R "3, %%" R "2, %%" R "2\n" OP " %%" R "5, %%" R "4, %%" R "4\n" OP \
     " %%" R "7, %%" R "6, %%" R "6\n" OP " %%" R "2, %%" R "0, %%" R "0\n" OP " %%" R "6, %%" R "4, %%" R "4\n" OP \
     " %%" R "4, %%" R "0, %%" R "0\n"

// All loops of a width but `load`. TRIAD leaves b + scale * c in the registers.
#define CROSSTALK_STORING_KERNELS(WIDTH, MOVE, STREAM, SIZE, R, TRIAD, AFTER)                                         \
  CROSSTALK_TRAFFIC_KERNEL(WIDTH##_store, MOVE, SIZE, R, CROSSTALK_EIGHT(CROSSTALK_SAME_TO_A, MOVE, SIZE, R), AFTER)  \
  CROSSTALK_TRAFFIC_KERNEL(                                                                                           \
      WIDTH##_copy, MOVE, SIZE, R,                                                                                    \
      CROSSTALK_EIGHT(CROSSTALK_FROM_B, MOVE, SIZE, R) CROSSTALK_EIGHT(CROSSTALK_TO_A, MOVE, SIZE, R), AFTER)         \
  CROSSTALK_TRAFFIC_KERNEL(WIDTH##_triad, MOVE, SIZE, R, TRIAD CROSSTALK_EIGHT(CROSSTALK_TO_A, MOVE, SIZE, R), AFTER) \
  CROSSTALK_TRAFFIC_KERNEL(WIDTH##_store_streaming, MOVE, SIZE, R,                                                    \
                           CROSSTALK_EIGHT(CROSSTALK_SAME_TO_A, STREAM, SIZE, R), AFTER "sfence\n")                   \
  CROSSTALK_TRAFFIC_KERNEL(WIDTH##_copy_streaming, MOVE, SIZE, R,                                                     \
                           CROSSTALK_EIGHT(CROSSTALK_FROM_B, MOVE, SIZE, R)                                           \
                               CROSSTALK_EIGHT(CROSSTALK_TO_A, STREAM, SIZE, R),                                      \
                           AFTER "sfence\n")                                                                          \
  CROSSTALK_TRAFFIC_KERNEL(WIDTH##_triad_streaming, MOVE, SIZE, R,                                                    \
                           TRIAD CROSSTALK_EIGHT(CROSSTALK_TO_A, STREAM, SIZE, R), AFTER "sfence\n")

#define CROSSTALK_TRIAD_2(SIZE, R)                     \
  CROSSTALK_EIGHT(CROSSTALK_FROM_C, "movaps", SIZE, R) \
  CROSSTALK_EIGHT(CROSSTALK_SCALE, "mulpd", SIZE, R) CROSSTALK_EIGHT(CROSSTALK_XOR_2, "addpd", SIZE, R)
#define CROSSTALK_TRIAD_3(SIZE, R) \
  CROSSTALK_EIGHT(CROSSTALK_FROM_C, "vmovaps", SIZE, R) CROSSTALK_EIGHT(CROSSTALK_FMA_B, "vfmadd213pd", SIZE, R)
// NOLINTEND(bugprone-macro-parentheses)

Checksum repeated(double value) {
  Checksum vector;
  vector.fill(__builtin_bit_cast(std::uint64_t, value));
  return vector;
}

/// As a number, since arrays that a loop does not use are null.
std::uintptr_t end(const double* array, std::uint64_t bytes) { return reinterpret_cast<std::uintptr_t>(array) + bytes; }

CROSSTALK_LOAD_KERNEL(sse_load, CROSSTALK_ZERO_2, CROSSTALK_XOR_2, "pxor", "16", "xmm", CROSSTALK_FOLD_2("pxor", "xmm"),
                      "movups %%xmm0, (%[sum])\n")
CROSSTALK_LOAD_KERNEL(avx2_load, CROSSTALK_ZERO_3, CROSSTALK_XOR_3, "vpxor", "32", "ymm",
                      CROSSTALK_FOLD_3("vpxor", "ymm"), "vmovups %%ymm0, (%[sum])\nvzeroupper\n")
CROSSTALK_LOAD_KERNEL(avx512_load, CROSSTALK_ZERO_3, CROSSTALK_XOR_3, "vpxorq", "64", "zmm",
                      CROSSTALK_FOLD_3("vpxorq", "zmm"), "vmovups %%zmm0, (%[sum])\nvzeroupper\n")
CROSSTALK_STORING_KERNELS(sse, "movups", "movntps", "16", "xmm", CROSSTALK_TRIAD_2("16", "xmm"), "")
CROSSTALK_STORING_KERNELS(avx2, "vmovups", "vmovntps", "32", "ymm", CROSSTALK_TRIAD_3("32", "ymm"), "vzeroupper\n")
CROSSTALK_STORING_KERNELS(avx512, "vmovups", "vmovntps", "64", "zmm", CROSSTALK_TRIAD_3("64", "zmm"), "vzeroupper\n")

constexpr std::array<TrafficKernel, 21> kernels = {{
    {Traffic::load, Width::sse, sse_load},
    {Traffic::store, Width::sse, sse_store},
    {Traffic::copy, Width::sse, sse_copy},
    {Traffic::triad, Width::sse, sse_triad},
    {Traffic::store_streaming, Width::sse, sse_store_streaming},
    {Traffic::copy_streaming, Width::sse, sse_copy_streaming},
    {Traffic::triad_streaming, Width::sse, sse_triad_streaming},
    {Traffic::load, Width::avx2, avx2_load},
    {Traffic::store, Width::avx2, avx2_store},
    {Traffic::copy, Width::avx2, avx2_copy},
    {Traffic::triad, Width::avx2, avx2_triad},
    {Traffic::store_streaming, Width::avx2, avx2_store_streaming},
    {Traffic::copy_streaming, Width::avx2, avx2_copy_streaming},
    {Traffic::triad_streaming, Width::avx2, avx2_triad_streaming},
    {Traffic::load, Width::avx512, avx512_load},
    {Traffic::store, Width::avx512, avx512_store},
    {Traffic::copy, Width::avx512, avx512_copy},
    {Traffic::triad, Width::avx512, avx512_triad},
    {Traffic::store_streaming, Width::avx512, avx512_store_streaming},
    {Traffic::copy_streaming, Width::avx512, avx512_copy_streaming},
    {Traffic::triad_streaming, Width::avx512, avx512_triad_streaming},
}};

}  // namespace

std::span<const TrafficKernel> traffic_kernels() { return kernels; }

unsigned arrays_of(Traffic traffic) {
  switch (traffic) {
    case Traffic::copy:
    case Traffic::copy_streaming:
      return 2;
    case Traffic::triad:
    case Traffic::triad_streaming:
      return 3;
    default:
      return 1;
  }
}

std::uint64_t requested_bytes(Traffic traffic, std::uint64_t bytes) { return arrays_of(traffic) * bytes; }

}  // namespace crosstalk::collectors::calibration
