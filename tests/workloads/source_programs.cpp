// SPDX-License-Identifier: Apache-2.0
// The worked programs of "CPU performance tuning based on the type of application" (RIKEN, version 1.1, 2021), sections
// 3.1 to 3.3, which compares each with its equation 1.4: in_memory (figure 3.1), 3M-2L2-2F (3.3), 3M-12L2-12F, whose
// text is not printed there, and 3M-6L2-80F (3.8). An element takes so many values from memory (M; what is stored is
// fetched, too) and from L2, and F operations.
//
// Changed: rows are of 2400 elements in place of 3610, so that L2 holds the 13 rows of c, and L1D not the 3, on
// machines of 32 to 48 KiB of L1D and from 512 KiB of L2; planes follow each other without a gap, as one array; and the
// operations of 3M-6L2-80F are five chains of 8 multiply-adds, which is what figure 3.8 comes to.
#include <immintrin.h>

#include "counted_loops.h"
#include "wide_vectors.h"
#include "workload.h"

namespace {

using workload::Array;
using workload::Flags;
using workload::Truth;
using workload::vector_bytes;
using workload::vector_doubles;
using workload::vectors;
using Vector = workload::Vector;
using Loop = workload::CountedLoop<struct Data>;

constexpr std::size_t row_doubles = 2400;
constexpr std::ptrdiff_t row = row_doubles / vector_doubles;  // in vectors
constexpr std::size_t most_rows = 6;                          // on each side

struct Data {
  explicit Data(std::size_t bytes) : a(bytes), c(bytes + 2 * most_rows * row_doubles * sizeof(double)) {}
  [[nodiscard]] std::size_t count() const { return a.count() / vector_doubles; }  // in vectors
  [[nodiscard]] const Vector* middle() const { return vectors(c.data()) + most_rows * row; }
  Array a, c;
};

CROSSTALK_WIDE std::uint64_t in_memory(Data& data, std::uint64_t n) {
  const Vector x = Vector{} + 0.5, z = Vector{} + 0.25;
  auto* const c10 = vectors(data.a.data());
  const auto* const c1 = data.middle();
  const std::size_t count = data.count();
  const std::uint64_t rounds = n / count + 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      const Vector value = (z + c1[i] * x) * c1[i] + z;
      // In place of the source's ZFILL: lines that are stored are not fetched.
#if CROSSTALK_VECTOR_BYTES == 64
      _mm512_stream_pd(reinterpret_cast<double*>(c10 + i), reinterpret_cast<__m512d>(value));
#else
      _mm256_stream_pd(reinterpret_cast<double*>(c10 + i), reinterpret_cast<__m256d>(value));
#endif
    }
  }
  return rounds * count;
}

CROSSTALK_WIDE std::uint64_t m3_l2_2_f2(Data& data, std::uint64_t n) {
  auto* const a = vectors(data.a.data());
  const auto* const c = data.middle();
  const std::size_t count = data.count();
  const std::uint64_t rounds = n / count + 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      a[i] = c[i - row] + c[i] * c[i + row];
    }
  }
  return rounds * count;
}

CROSSTALK_WIDE std::uint64_t m3_l2_12_f12(Data& data, std::uint64_t n) {
  auto* const a = vectors(data.a.data());
  const auto* const c = data.middle();
  const std::size_t count = data.count();
  const std::uint64_t rounds = n / count + 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      const Vector even = c[i - 2 * row] * c[i + 2 * row] + c[i - 4 * row] * c[i + 4 * row];
      const Vector more = c[i - 6 * row] * c[i + 6 * row] + even;
      a[i] =
          c[i - 5 * row] * c[i + 5 * row] + (c[i - 3 * row] * c[i + 3 * row] + (c[i - row] * c[i + row] + more + c[i]));
    }
  }
  return rounds * count;
}

/// Figure 3.8's ww1 to ww5 are chains of multiply-adds. They go on side by side ("type-2 coding", section 3.3): one
/// after the other, a processor's schedulers fill up with what cannot begin.
CROSSTALK_WIDE std::uint64_t m3_l2_6_f80(Data& data, std::uint64_t n) {
  auto* const a = vectors(data.a.data());
  const auto* const c = data.middle();
  const std::size_t count = data.count();
  const std::uint64_t rounds = n / count + 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      const Vector u1 = c[i + row], d1 = c[i - row], u2 = c[i + 2 * row], d2 = c[i - 2 * row];
      const Vector u3 = c[i + 3 * row], d3 = c[i - 3 * row];
      Vector ww1 = c[i], ww2 = d1, ww3 = d2, ww4 = u2, ww5 = d3;
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        ww1 = ww1 * u1 + d1, ww2 = ww2 * u1 + d1;
        ww3 = ww3 * u2 + d2, ww4 = ww4 * u2 + d2;
        ww5 = ww5 * u3 + d3;
      }
      a[i] = ww1 + ww2 + ww3 + ww4 + ww5;
    }
  }
  return rounds * count;
}

constexpr double v = vector_bytes;
constexpr double lanes = vector_doubles;
// The sums at the ends of chains add 4 operations to the source's count.
const std::vector<Loop> loops = {
    {"in_memory", in_memory, 5e7, 4 * lanes, 2 * v, 2 * v, v},
    {"m3_l2_2_f2", m3_l2_2_f2, 5e7, 2 * lanes, 4 * v, 3 * v, 5 * v},
    {"m3_l2_12_f12", m3_l2_12_f12, 4e7, 12 * lanes, 14 * v, 3 * v, 15 * v},
    {"m3_l2_6_f80", m3_l2_6_f80, 2e7, 84 * lanes, 8 * v, 3 * v, 9 * v},
};

}  // namespace

int main(int argc, char** argv) {
  Flags flags("source_programs", "the worked programs of the source of the busy-time model");
  flags.number("--seconds", 10, 0.1, 3600, "CPU time of the thread")
      .number("--visit", 0.3, 0.001, 10, "about how long a visit of a loop lasts, s")
      .number("--far", 256, 1, 4096, "MiB of each of the 2 arrays, which are to be out of the caches");
  flags.choice("--only", workload::names_of(loops), "the loop to run");
  flags.parse(argc, argv);
  workload::need_vectors(flags);
  const double begin = workload::thread_seconds();
  std::string counted;
  workload::run_crew(1, [&](int) {
    Data data(static_cast<std::size_t>(flags.integer("--far")) << 20U);
    counted = workload::run_counted(data, workload::chosen(loops, flags.word("--only")), flags.real("--seconds"),
                                    flags.real("--visit"));
  });
  Truth truth("source_programs", 2);
  truth.file = __FILE_NAME__;
  truth.print(workload::thread_seconds() - begin, counted);
}
