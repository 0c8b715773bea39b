// SPDX-License-Identifier: Apache-2.0
// Loops whose limit is known by construction: multiply-adds in registers, a triad out of the caches and one in the
// second level, a chain of dependent additions, a chase through pointers. Each counts its iterations, operations and
// bytes, and times itself with the thread's CPU clock. Vectors of 32 bytes in every build; a processor without AVX2 and
// FMA is refused.
#include <immintrin.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "counted_loops.h"
#include "peak_beside.h"
#include "workload.h"

namespace {

using crosstalk::models::Traffic;
using workload::Array;
using workload::Flags;
using workload::thread_seconds;
using workload::Truth;

constexpr std::size_t vector_bytes = 32;

struct Data {
  explicit Data(std::size_t far_bytes)
      : far_a(far_bytes), far_b(far_bytes), far_c(far_bytes), near_a(near), near_b(near), near_c(near) {
    next.resize(2 * far_bytes / sizeof(next[0]));
    std::vector<std::uint32_t> order(next.size() / per_line);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin() + 1, order.end(), std::mt19937(3));
    for (std::size_t i = 0; i < order.size(); ++i) {
      next[std::size_t{order[i]} * per_line] = order[(i + 1) % order.size()] * per_line;
    }
  }
  static constexpr std::size_t near = std::size_t{96} << 10U;  // three of them stay in L2, and not in L1D
  static constexpr std::uint32_t per_line = 16;
  Array far_a, far_b, far_c, near_a, near_b, near_c;
  std::vector<std::uint32_t> next;
  double sink = 0;
  std::uint32_t at = 0;
};

#define WIDE __attribute__((target("avx2,fma"), noinline))

WIDE std::uint64_t multiply_adds(Data& data, std::uint64_t n) {
  const __m256d factor = _mm256_set1_pd(0.999999);
  const __m256d more = _mm256_set1_pd(1e-6);
  const double* from = data.near_a.data();  // the compiler cannot know that they are alike, and keeps all ten
  __m256d a = _mm256_load_pd(from), b = _mm256_load_pd(from + 4), c = _mm256_load_pd(from + 8);
  __m256d d = _mm256_load_pd(from + 12), e = _mm256_load_pd(from + 16), f = _mm256_load_pd(from + 20);
  __m256d g = _mm256_load_pd(from + 24), h = _mm256_load_pd(from + 28), i = _mm256_load_pd(from + 32);
  __m256d j = _mm256_load_pd(from + 36);
  for (std::uint64_t k = 0; k < n; ++k) {
    a = _mm256_fmadd_pd(a, factor, more), b = _mm256_fmadd_pd(b, factor, more), c = _mm256_fmadd_pd(c, factor, more);
    d = _mm256_fmadd_pd(d, factor, more), e = _mm256_fmadd_pd(e, factor, more), f = _mm256_fmadd_pd(f, factor, more);
    g = _mm256_fmadd_pd(g, factor, more), h = _mm256_fmadd_pd(h, factor, more), i = _mm256_fmadd_pd(i, factor, more);
    j = _mm256_fmadd_pd(j, factor, more);
  }
  const __m256d sum = a + b + c + d + e + f + g + h + i + j;
  data.sink += _mm256_cvtsd_f64(sum);
  return n;
}

WIDE std::uint64_t far_triad(Data& data, std::uint64_t n) {
  const __m256d factor = _mm256_set1_pd(0.5);
  const std::size_t count = data.far_a.count() / 4;
  const std::uint64_t rounds = n / count + 1;
  double* const a = data.far_a.data();
  const double* const b = data.far_b.data();
  const double* const c = data.far_c.data();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      _mm256_store_pd(a + 4 * i, _mm256_fmadd_pd(_mm256_load_pd(c + 4 * i), factor, _mm256_load_pd(b + 4 * i)));
    }
  }
  return rounds * count;
}

WIDE std::uint64_t near_triad(Data& data, std::uint64_t n) {
  const __m256d factor = _mm256_set1_pd(0.5);
  const std::size_t count = data.near_a.count() / 4;
  const std::uint64_t rounds = n / count + 1;
  double* const a = data.near_a.data();
  const double* const b = data.near_b.data();
  const double* const c = data.near_c.data();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      _mm256_store_pd(a + 4 * i, _mm256_fmadd_pd(_mm256_load_pd(c + 4 * i), factor, _mm256_load_pd(b + 4 * i)));
    }
  }
  return rounds * count;
}

[[gnu::noinline]] std::uint64_t chained_sum(Data& data, std::uint64_t n) {
  double sum = data.sink;
  const double more = data.near_a.data()[0];
  for (std::uint64_t i = 0; i < n; ++i) {
    sum = sum * 0.5 + more;
  }
  data.sink = sum;
  return n;
}

[[gnu::noinline]] std::uint64_t chase(Data& data, std::uint64_t n) {
  std::uint32_t at = data.at;
  const std::uint32_t* const next = data.next.data();
  for (std::uint64_t i = 0; i < n; ++i) {
    at = next[at];
  }
  data.at = at;
  return n;
}

const std::vector<workload::CountedLoop<Data>> loops = {
    {"multiply_adds", multiply_adds, 5e8, 80, 0, 0},
    {"far_triad", far_triad, 1e8, 8, 3.0 * vector_bytes, 4.0 * vector_bytes},
    {"near_triad", near_triad, 5e8, 8, 3.0 * vector_bytes, 0, 4.0 * vector_bytes},
    {"chained_sum", chained_sum, 3e8, 2, 0, 0},
    {"chase", chase, 1e7, 0, 4, -1},
};

// Limits of the loops that a unit with a peak limits.
const std::map<std::string, workload::Limit> limits = {
    {"multiply_adds", {"fpu", Traffic::triad}},
    {"far_triad", {"memory", Traffic::triad}},
    {"near_triad", {"l2", Traffic::triad}},
};

std::unique_ptr<workload::PeakBeside> peak_of(const Flags& flags) {
  const auto limit = limits.find(flags.word("--only"));
  if (flags.integer("--peak") == 0) {
    return nullptr;
  }
  if (limit == limits.end()) {
    flags.refuse("--peak 1 needs an --only whose loop a unit limits");
  }
  return std::make_unique<workload::PeakBeside>(limit->second, vector_bytes);
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("busy_loops", "loops that are limited by one unit each");
  flags.number("--seconds", 10, 0.1, 3600, "CPU time of the thread")
      .number("--visit", 0.2, 0.001, 10, "about how long a visit of a loop lasts, s")
      .number("--far", 256, 1, 4096, "MiB of each array that is to be out of the caches");
  flags.number("--peak", 0, 0, 1, "1: the unit that limits the loop of --only is measured in turns with it");
  flags.choice("--only", workload::names_of(loops), "the loop to run");
  flags.parse(argc, argv);
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    flags.refuse("this processor has no AVX2 or no FMA");
  }
  const double begin = thread_seconds();
  std::string counted;
  workload::run_crew(1, [&](int) {
    Data data(static_cast<std::size_t>(flags.integer("--far")) << 20U);
    counted = workload::run_with_peak(data, workload::chosen(loops, flags.word("--only")), flags.real("--seconds"),
                                      flags.real("--visit"), peak_of(flags));
  });
  Truth truth("busy_loops", 2);
  truth.file = __FILE_NAME__;
  truth.print(thread_seconds() - begin, counted);
}
