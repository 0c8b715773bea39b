// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/sparse_kernel.h"

namespace crosstalk::collectors::calibration {
namespace {

void multiply_once(const CsrMatrix& a, const double* x, double* y) {
  const std::uint32_t* start = a.row_starts;
  std::uint64_t rows = a.rows, at = 0, end = 0, column = 0;
  asm volatile(
      ".p2align 5\n"
      "1:\n"
      "mov (%[start]), %k[at]\n"
      "mov 4(%[start]), %k[end]\n"
      "movsd (%[y]), %%xmm0\n"
      "cmp %[end], %[at]\n"
      "jae 3f\n"
      ".p2align 4\n"
      "2:\n"
      "mov (%[columns],%[at],4), %k[column]\n"
      "movsd (%[values],%[at],8), %%xmm1\n"
      "mulsd (%[x],%[column],8), %%xmm1\n"
      "addsd %%xmm1, %%xmm0\n"
      "inc %[at]\n"
      "cmp %[end], %[at]\n"
      "jb 2b\n"
      "3:\n"
      "movsd %%xmm0, (%[y])\n"
      "add $4, %[start]\n"
      "add $8, %[y]\n"
      "dec %[rows]\n"
      "jnz 1b\n"
      : [start] "+r"(start), [y] "+r"(y), [rows] "+r"(rows), [at] "+r"(at), [end] "+r"(end), [column] "+r"(column)
      : [columns] "r"(a.columns), [values] "r"(a.values), [x] "r"(x)
      : "cc", "memory", "xmm0", "xmm1");
}

}  // namespace

void multiply(const CsrMatrix& a, const double* x, double* y, std::uint64_t passes) {
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    multiply_once(a, x, y);
  }
}

}  // namespace crosstalk::collectors::calibration
