// SPDX-License-Identifier: Apache-2.0
// Vectors of 32 bytes (AVX2 and FMA), or of 64 (AVX-512) where CROSSTALK_VECTOR_BYTES says so: a program is built once
// for each, since machines differ in which of them gets the most out of a unit.
#pragma once

#include "workload.h"

#ifndef CROSSTALK_VECTOR_BYTES
#define CROSSTALK_VECTOR_BYTES 32
#endif
#if CROSSTALK_VECTOR_BYTES == 64
#define CROSSTALK_WIDE __attribute__((target("avx512f,avx512vl,avx512dq,prefer-vector-width=512"), noinline))
#else
#define CROSSTALK_WIDE __attribute__((target("avx2,fma"), noinline))
#endif

namespace workload {

inline constexpr std::size_t vector_bytes = CROSSTALK_VECTOR_BYTES;
using Vector __attribute__((vector_size(vector_bytes), may_alias)) = double;
inline constexpr std::size_t vector_doubles = vector_bytes / sizeof(double);

inline Vector* vectors(double* data) { return reinterpret_cast<Vector*>(data); }
inline const Vector* vectors(const double* data) { return reinterpret_cast<const Vector*>(data); }

/// Ends the process where the processor has no such vectors.
inline void need_vectors(const Flags& flags) {
  const bool has = vector_bytes == 64 ? __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                                            __builtin_cpu_supports("avx512dq")
                                      : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!has) {
    flags.refuse("this processor has no vectors of " + std::to_string(vector_bytes) + " bytes with multiply-adds");
  }
}

}  // namespace workload
