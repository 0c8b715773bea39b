// SPDX-License-Identifier: Apache-2.0
// Loops with a known place in a roofline, which count their own work: triads with plain and with streaming stores,
// multiply-adds in registers by width, sums over arrays of any size, dot products with several accumulators, mixes of
// scalar and vector additions, loads and stores between additions of whole numbers, and products of a sparse matrix
// with rows of one length. Each times itself with the thread's CPU clock. A processor without AVX2 and FMA is refused.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "counted_loops.h"
#include "workload.h"

namespace {

using workload::Array;
using workload::Flags;
using workload::thread_seconds;
using workload::Truth;

struct Data {
  Data(std::size_t bytes, std::uint32_t row, std::uint32_t rows)
      : a(bytes / 3), b(bytes / 3), c(bytes / 3), all(bytes) {
    std::mt19937 random(5);
    starts.push_back(0);
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint32_t i = 0; i < row; ++i) {
        column.push_back(random() % columns);
      }
      starts.push_back(static_cast<std::uint32_t>(column.size()));
    }
    value.assign(column.size(), 0.5);
    y.assign(rows, 0.0);
  }
  static constexpr std::uint32_t columns = 1024;  // x stays in the first level
  Array a, b, c, all;
  Array near_a{8192}, near_b{8192};
  std::vector<std::uint32_t> starts, column;
  std::vector<double> value, x = std::vector<double>(columns, 1.0), y;
  double sink = 0;
};

#define WIDE __attribute__((target("avx2,fma"), noinline))
#define WIDEST __attribute__((target("avx512f,avx512vl,avx512dq,fma"), noinline))

WIDE std::uint64_t triad(Data& data, std::uint64_t n) {
  const __m256d factor = _mm256_set1_pd(0.5);
  const std::size_t count = data.a.count() / 4;
  const std::uint64_t rounds = n / count + 1;
  double* const a = data.a.data();
  const double* const b = data.b.data();
  const double* const c = data.c.data();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      const __m256d sum = _mm256_fmadd_pd(_mm256_load_pd(c + 4 * i), factor, _mm256_load_pd(b + 4 * i));
      _mm256_store_pd(a + 4 * i, sum);
    }
  }
  return rounds * count;
}

WIDE std::uint64_t triad_streaming(Data& data, std::uint64_t n) {
  const __m256d factor = _mm256_set1_pd(0.5);
  const std::size_t count = data.a.count() / 4;
  const std::uint64_t rounds = n / count + 1;
  double* const a = data.a.data();
  const double* const b = data.b.data();
  const double* const c = data.c.data();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      const __m256d sum = _mm256_fmadd_pd(_mm256_load_pd(c + 4 * i), factor, _mm256_load_pd(b + 4 * i));
      _mm256_stream_pd(a + 4 * i, sum);
    }
  }
  return rounds * count;
}

/// Twelve chains of multiply-adds of a type. The assembly keeps the compiler from joining them.
#define CHAINS(NAME, TARGET, VECTOR)                                                                                   \
  TARGET std::uint64_t NAME(Data& data, std::uint64_t n) {                                                             \
    VECTOR v0 = VECTOR{} + data.sink, v1 = v0, v2 = v0, v3 = v0, v4 = v0, v5 = v0, v6 = v0, v7 = v0, v8 = v0, v9 = v0, \
           v10 = v0, v11 = v0;                                                                                         \
    const VECTOR factor = VECTOR{} + 0.999999, more = VECTOR{} + 1e-6;                                                 \
    for (std::uint64_t k = 0; k < n; ++k) {                                                                            \
      v0 = v0 * factor + more, v1 = v1 * factor + more, v2 = v2 * factor + more, v3 = v3 * factor + more;              \
      v4 = v4 * factor + more, v5 = v5 * factor + more, v6 = v6 * factor + more, v7 = v7 * factor + more;              \
      v8 = v8 * factor + more, v9 = v9 * factor + more, v10 = v10 * factor + more, v11 = v11 * factor + more;          \
      asm("" : "+x"(v0), "+x"(v1), "+x"(v2), "+x"(v3), "+x"(v4), "+x"(v5));                                            \
      asm("" : "+x"(v6), "+x"(v7), "+x"(v8), "+x"(v9), "+x"(v10), "+x"(v11));                                          \
    }                                                                                                                  \
    const VECTOR sum = v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7 + v8 + v9 + v10 + v11;                                    \
    data.sink = first(&sum) * 1e-3;                                                                                    \
    return n;                                                                                                          \
  }

double first(const void* vector) { return *static_cast<const double*>(vector); }

using Two __attribute__((vector_size(16), may_alias)) = double;
using Four __attribute__((vector_size(32), may_alias)) = double;
using Eight __attribute__((vector_size(64), may_alias)) = double;
CHAINS(fma_scalar, WIDE, double)
CHAINS(fma_sse, WIDE, Two)
CHAINS(fma_avx2, WIDE, Four)
CHAINS(fma_avx512, WIDEST, Eight)

/// Eight vectors an iteration, in eight sums.
WIDE std::uint64_t sum(Data& data, std::uint64_t n) {
  const std::size_t count = data.all.count() / 32;
  const std::uint64_t rounds = n / count + 1;
  __m256d sums[8] = {};  // NOLINT: a template drops the alignment
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const double* from = data.all.data();
    for (std::size_t i = 0; i < count; ++i, from += 32) {
      sums[0] += _mm256_load_pd(from), sums[1] += _mm256_load_pd(from + 4);
      sums[2] += _mm256_load_pd(from + 8), sums[3] += _mm256_load_pd(from + 12);
      sums[4] += _mm256_load_pd(from + 16), sums[5] += _mm256_load_pd(from + 20);
      sums[6] += _mm256_load_pd(from + 24), sums[7] += _mm256_load_pd(from + 28);
    }
  }
  const __m256d all = sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
  data.sink += _mm256_cvtsd_f64(all);
  return rounds * count;
}

#define EIGHT_TIMES(STEP) STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
// The assembly keeps the compiler from joining steps, and from leaving them out.
#define PRODUCT(K)                 \
  if constexpr (K < sums) {        \
    s##K += a[K] * b[K];           \
    asm volatile("" : "+x"(s##K)); \
  }
#define ADDITION(K)                \
  if constexpr (K < vectors) {     \
    v##K += wide;                  \
    asm volatile("" : "+x"(v##K)); \
  } else {                         \
    s##K += 1e-9;                  \
    asm volatile("" : "+x"(s##K)); \
  }

/// `sums` products an iteration, each added to its own sum.
template <int sums>
WIDE std::uint64_t dot(Data& data, std::uint64_t n) {
  const std::size_t count = data.near_a.count() / sums;
  const std::uint64_t rounds = n / count + 1;
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const double* a = data.near_a.data();
    const double* b = data.near_b.data();
    for (std::size_t i = 0; i < count; ++i, a += sums, b += sums) {
      EIGHT_TIMES(PRODUCT)
    }
  }
  data.sink += s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
  return rounds * count;
}

/// Eight additions an iteration, `vectors` of them of four doubles and the others of one, and a load.
template <int vectors>
WIDE std::uint64_t mixed(Data& data, std::uint64_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
  __m256d v0{}, v1{}, v2{}, v3{}, v4{}, v5{}, v6{}, v7{};
  const __m256d wide = _mm256_set1_pd(1e-9);
  const volatile double* const from = data.near_a.data();
  for (std::uint64_t k = 0; k < n; ++k) {
    static_cast<void>(*from);
    EIGHT_TIMES(ADDITION)
  }
  data.sink += s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + (v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7)[0];
  return n;
}

#define INCREMENT(K)                                    \
  if constexpr (((K - first) & 7) < adds) {             \
    asm volatile("add %1, %0" : "+r"(v##K) : "r"(one)); \
  }
/// Adds to `adds` of the eight numbers, from number `first` on.
template <int first, int adds, class Number>
[[gnu::always_inline]] inline void add_one(Number one, Number& v0, Number& v1, Number& v2, Number& v3, Number& v4,
                                           Number& v5, Number& v6, Number& v7) {
  EIGHT_TIMES(INCREMENT)
}

/// Two loads and a store an iteration, in order, each followed by `times` times `adds` independent additions of whole
/// numbers.
template <int adds, int times>
[[gnu::noinline]] std::uint64_t loads_and_adds(Data& data, std::uint64_t n) {
  const std::size_t count = data.a.count();
  const std::uint64_t rounds = n / count + 1, one = 1;
  std::uint64_t v0 = 0, v1 = 0, v2 = 0, v3 = 0, v4 = 0, v5 = 0, v6 = 0, v7 = 0;
  volatile double* const a = data.a.data();
  const volatile double* const b = data.b.data();
  const volatile double* const c = data.c.data();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<void>(b[i]);
#pragma GCC unroll 8
      for (int time = 0; time < times; ++time) {
        add_one<0, adds>(one, v0, v1, v2, v3, v4, v5, v6, v7);
      }
      static_cast<void>(c[i]);
#pragma GCC unroll 8
      for (int time = 0; time < times; ++time) {
        add_one<adds, adds>(one, v0, v1, v2, v3, v4, v5, v6, v7);
      }
      a[i] = 1.0;
#pragma GCC unroll 8
      for (int time = 0; time < times; ++time) {
        add_one<2 * adds, adds>(one, v0, v1, v2, v3, v4, v5, v6, v7);
      }
    }
  }
  data.sink += static_cast<double>(v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7);
  return rounds * count;
}

/// An iteration is a row: two starts are loaded, and y is loaded and stored.
[[gnu::noinline]] std::uint64_t spmv(Data& data, std::uint64_t n) {
  const std::size_t rows = data.y.size();
  const std::uint64_t rounds = n / rows + 1;
  const volatile std::uint32_t* const starts = data.starts.data();
  const std::uint32_t* const column = data.column.data();
  const double* const value = data.value.data();
  const double* const x = data.x.data();
  double* const y = data.y.data();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t row = 0; row < rows; ++row) {
      double total = y[row];
      std::uint64_t i = starts[row];
      for (const std::uint64_t end = starts[row + 1]; i != end; ++i) {
        total += value[i] * x[column[i]];
      }
      y[row] = total;
    }
  }
  return rounds * rows;
}

using Loop = workload::CountedLoop<Data>;

std::vector<Loop> loops_of(double row, bool widest) {
  std::vector<Loop> loops = {
      {"triad", triad, 1e8, 8, 96, 128},
      {"triad_streaming", triad_streaming, 1e8, 8, 96, 96},
      {"fma_scalar", fma_scalar, 3e8, 24, 0, 0},
      {"fma_sse", fma_sse, 3e8, 48, 0, 0},
      {"fma_avx2", fma_avx2, 3e8, 96, 0, 0},
      {"sum", sum, 1e8, 32, 256, -1},
      {"dot<1>", dot<1>, 5e8, 2, 16, 0},
      {"dot<2>", dot<2>, 5e8, 4, 32, 0},
      {"dot<4>", dot<4>, 5e8, 8, 64, 0},
      {"dot<8>", dot<8>, 5e8, 16, 128, 0},
      {"mixed<0>", mixed<0>, 3e8, 8, 8, 0},
      {"mixed<2>", mixed<2>, 3e8, 14, 8, 0},
      {"mixed<4>", mixed<4>, 3e8, 20, 8, 0},
      {"mixed<8>", mixed<8>, 3e8, 32, 8, 0},
      {"loads_and_adds<0, 1>", loads_and_adds<0, 1>, 5e8, 0, 24, -1},
      {"loads_and_adds<1, 1>", loads_and_adds<1, 1>, 5e8, 0, 24, -1},
      {"loads_and_adds<2, 1>", loads_and_adds<2, 1>, 5e8, 0, 24, -1},
      {"loads_and_adds<4, 1>", loads_and_adds<4, 1>, 3e8, 0, 24, -1},
      {"loads_and_adds<8, 1>", loads_and_adds<8, 1>, 2e8, 0, 24, -1},
      {"loads_and_adds<8, 2>", loads_and_adds<8, 2>, 1e8, 0, 24, -1},
      {"loads_and_adds<8, 4>", loads_and_adds<8, 4>, 5e7, 0, 24, -1},
      {"loads_and_adds<8, 8>", loads_and_adds<8, 8>, 2e7, 0, 24, -1},
      {"spmv", spmv, 5e8 / row, 2 * row, 24 + 20 * row, -1},
  };
  if (widest) {
    loops.push_back({"fma_avx512", fma_avx512, 3e8, 192, 0, 0});
  }
  return loops;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("roofline_loops", "loops with a known place in a roofline");
  flags.number("--seconds", 2, 0.1, 3600, "CPU time of the first thread")
      .number("--visit", 0.2, 0.001, 10, "about how long a visit of a loop lasts, s")
      .number("--kib", 16, 1, 4194304, "KiB of all arrays of `triad`, `triad_streaming` and `sum`")
      .number("--row", 8, 1, 4096, "non-zeros of a row of the sparse matrix")
      .number("--rows", 4096, 1, 16777216, "its rows")
      .number("--threads", 1, 1, 64, "threads, each with data of its own")
      .number("--first", 1, 0.1, 100, "the first one's CPU time over each other's");
  flags.choice("--only", workload::names_of(loops_of(8, true)), "the loop to run");
  flags.parse(argc, argv);
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    flags.refuse("this processor has no AVX2 or no FMA");
  }
  const auto loops =
      workload::chosen(loops_of(flags.integer("--row"), __builtin_cpu_supports("avx512f") != 0), flags.word("--only"));
  if (loops.empty()) {
    flags.refuse("this processor has no AVX-512");
  }
  const double begin = thread_seconds();
  const int threads = static_cast<int>(flags.integer("--threads"));
  std::string counted;
  workload::run_crew(threads, [&](int thread) {
    const auto data = std::make_unique<Data>(static_cast<std::size_t>(flags.real("--kib") * 1024),
                                             flags.integer("--row"), flags.integer("--rows"));
    const double seconds = flags.real("--seconds") / (thread == 1 ? 1 : flags.real("--first"));
    std::string own = workload::run_counted(*data, loops, seconds, flags.real("--visit"));
    if (thread == 1) {
      counted = std::move(own);
    }
  });
  Truth truth("roofline_loops", threads + 1);
  truth.file = __FILE_NAME__;
  truth.print(thread_seconds() - begin, counted);
}
