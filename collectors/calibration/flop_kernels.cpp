// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/flop_kernels.h"

#include <array>

namespace crosstalk::collectors::calibration {
namespace {

using models::Operation;
using models::Precision;
using models::Width;

// Register 15 holds the multiplier, 14 the addend, 0 to 11 the accumulators. R is "xmm", "ymm" or "zmm". Clobbers name
// the xmm registers, which stand for their wider forms; registers beyond 15 are not used, as they would need AVX-512.
// NOLINTBEGIN(bugprone-macro-parentheses): pieces of strings
#define CROSSTALK_EACH(STEP, OP, R) \
  STEP(0, OP, R)                    \
  STEP(1, OP, R)                    \
  STEP(2, OP, R)                    \
  STEP(3, OP, R)                    \
  STEP(4, OP, R)                    \
  STEP(5, OP, R) STEP(6, OP, R) STEP(7, OP, R) STEP(8, OP, R) STEP(9, OP, R) STEP(10, OP, R) STEP(11, OP, R)

#define CROSSTALK_LOAD(N, MOVE, R) MOVE " 64*" #N "(%[accumulators]), %%" R #N "\n"
#define CROSSTALK_STORE(N, MOVE, R) MOVE " %%" R #N ", 64*" #N "(%[accumulators])\n"
// Two operands, of SSE.
#define CROSSTALK_ADD_2(N, OP, R) OP " %%" R "14, %%" R #N "\n"
#define CROSSTALK_MUL_2(N, OP, R) OP " %%" R "15, %%" R #N "\n"
// Three operands, of AVX and later.
#define CROSSTALK_ADD_3(N, OP, R) OP " %%" R "14, %%" R #N ", %%" R #N "\n"
#define CROSSTALK_MUL_3(N, OP, R) OP " %%" R "15, %%" R #N ", %%" R #N "\n"
#define CROSSTALK_FMA_3(N, OP, R) OP " %%" R "14, %%" R "15, %%" R #N "\n"

#define CROSSTALK_FLOP_KERNEL(NAME, STEP, OP, MOVE, R, AFTER)                                                         \
  void NAME(std::uint64_t rounds, const FlopOperands& operands, unsigned char* accumulators) {                        \
    asm volatile(                                                                                                     \
        MOVE " (%[multiplier]), %%" R "15\n" MOVE " (%[addend]), %%" R                                                \
             "14\n" CROSSTALK_EACH(CROSSTALK_LOAD, MOVE, R) ".p2align 5\n1:\n" CROSSTALK_EACH(STEP, OP, R)            \
                 CROSSTALK_EACH(STEP, OP, R) "dec %[rounds]\njnz 1b\n" CROSSTALK_EACH(CROSSTALK_STORE, MOVE, R) AFTER \
        : [rounds] "+r"(rounds)                                                                                       \
        : [multiplier] "r"(operands.multiplier), [addend] "r"(operands.addend), [accumulators] "r"(accumulators)      \
        : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",    \
          "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");                                                               \
  }
// NOLINTEND(bugprone-macro-parentheses)

CROSSTALK_FLOP_KERNEL(scalar_double_add, CROSSTALK_ADD_2, "addsd", "movsd", "xmm", "")
CROSSTALK_FLOP_KERNEL(scalar_double_mul, CROSSTALK_MUL_2, "mulsd", "movsd", "xmm", "")
CROSSTALK_FLOP_KERNEL(scalar_double_fma, CROSSTALK_FMA_3, "vfmadd213sd", "vmovsd", "xmm", "")
CROSSTALK_FLOP_KERNEL(scalar_single_add, CROSSTALK_ADD_2, "addss", "movss", "xmm", "")
CROSSTALK_FLOP_KERNEL(scalar_single_mul, CROSSTALK_MUL_2, "mulss", "movss", "xmm", "")
CROSSTALK_FLOP_KERNEL(scalar_single_fma, CROSSTALK_FMA_3, "vfmadd213ss", "vmovss", "xmm", "")
CROSSTALK_FLOP_KERNEL(sse_double_add, CROSSTALK_ADD_2, "addpd", "movups", "xmm", "")
CROSSTALK_FLOP_KERNEL(sse_double_mul, CROSSTALK_MUL_2, "mulpd", "movups", "xmm", "")
CROSSTALK_FLOP_KERNEL(sse_double_fma, CROSSTALK_FMA_3, "vfmadd213pd", "vmovups", "xmm", "")
CROSSTALK_FLOP_KERNEL(sse_single_add, CROSSTALK_ADD_2, "addps", "movups", "xmm", "")
CROSSTALK_FLOP_KERNEL(sse_single_mul, CROSSTALK_MUL_2, "mulps", "movups", "xmm", "")
CROSSTALK_FLOP_KERNEL(sse_single_fma, CROSSTALK_FMA_3, "vfmadd213ps", "vmovups", "xmm", "")
CROSSTALK_FLOP_KERNEL(avx2_double_add, CROSSTALK_ADD_3, "vaddpd", "vmovups", "ymm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx2_double_mul, CROSSTALK_MUL_3, "vmulpd", "vmovups", "ymm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx2_double_fma, CROSSTALK_FMA_3, "vfmadd213pd", "vmovups", "ymm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx2_single_add, CROSSTALK_ADD_3, "vaddps", "vmovups", "ymm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx2_single_mul, CROSSTALK_MUL_3, "vmulps", "vmovups", "ymm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx2_single_fma, CROSSTALK_FMA_3, "vfmadd213ps", "vmovups", "ymm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx512_double_add, CROSSTALK_ADD_3, "vaddpd", "vmovups", "zmm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx512_double_mul, CROSSTALK_MUL_3, "vmulpd", "vmovups", "zmm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx512_double_fma, CROSSTALK_FMA_3, "vfmadd213pd", "vmovups", "zmm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx512_single_add, CROSSTALK_ADD_3, "vaddps", "vmovups", "zmm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx512_single_mul, CROSSTALK_MUL_3, "vmulps", "vmovups", "zmm", "vzeroupper\n")
CROSSTALK_FLOP_KERNEL(avx512_single_fma, CROSSTALK_FMA_3, "vfmadd213ps", "vmovups", "zmm", "vzeroupper\n")

constexpr std::array<FlopKernel, 24> flop_kernel_table = {{
    {Width::scalar, Precision::double_precision, Operation::add, scalar_double_add},
    {Width::scalar, Precision::double_precision, Operation::mul, scalar_double_mul},
    {Width::scalar, Precision::double_precision, Operation::fma, scalar_double_fma},
    {Width::scalar, Precision::single_precision, Operation::add, scalar_single_add},
    {Width::scalar, Precision::single_precision, Operation::mul, scalar_single_mul},
    {Width::scalar, Precision::single_precision, Operation::fma, scalar_single_fma},
    {Width::sse, Precision::double_precision, Operation::add, sse_double_add},
    {Width::sse, Precision::double_precision, Operation::mul, sse_double_mul},
    {Width::sse, Precision::double_precision, Operation::fma, sse_double_fma},
    {Width::sse, Precision::single_precision, Operation::add, sse_single_add},
    {Width::sse, Precision::single_precision, Operation::mul, sse_single_mul},
    {Width::sse, Precision::single_precision, Operation::fma, sse_single_fma},
    {Width::avx2, Precision::double_precision, Operation::add, avx2_double_add},
    {Width::avx2, Precision::double_precision, Operation::mul, avx2_double_mul},
    {Width::avx2, Precision::double_precision, Operation::fma, avx2_double_fma},
    {Width::avx2, Precision::single_precision, Operation::add, avx2_single_add},
    {Width::avx2, Precision::single_precision, Operation::mul, avx2_single_mul},
    {Width::avx2, Precision::single_precision, Operation::fma, avx2_single_fma},
    {Width::avx512, Precision::double_precision, Operation::add, avx512_double_add},
    {Width::avx512, Precision::double_precision, Operation::mul, avx512_double_mul},
    {Width::avx512, Precision::double_precision, Operation::fma, avx512_double_fma},
    {Width::avx512, Precision::single_precision, Operation::add, avx512_single_add},
    {Width::avx512, Precision::single_precision, Operation::mul, avx512_single_mul},
    {Width::avx512, Precision::single_precision, Operation::fma, avx512_single_fma},
}};

}  // namespace

std::span<const FlopKernel> flop_kernels() { return flop_kernel_table; }

bool is_supported(Width width) {
  switch (width) {
    case Width::avx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    case Width::avx512:
      return __builtin_cpu_supports("avx512f") != 0;
    default:
      return true;  // part of x86-64
  }
}

bool is_supported(const FlopKernel& kernel) {
  return is_supported(kernel.width) && (kernel.operation != Operation::fma || __builtin_cpu_supports("fma") != 0);
}

std::uint64_t flops_of(const FlopKernel& kernel, std::uint64_t rounds) {
  return rounds * flop_steps_a_round * flop_accumulators *
         models::flops(kernel.width, kernel.precision, kernel.operation);
}

}  // namespace crosstalk::collectors::calibration
