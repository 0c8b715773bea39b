// SPDX-License-Identifier: Apache-2.0
// Loops of numerical programs that count their own work: dot product, stencils whose data fit one level of the caches,
// a scaled copy in the first level, histogram, product of a sparse matrix and a vector, and steps of particles that
// take one of several paths. Each times itself with the thread's CPU clock.
#include <map>
#include <memory>
#include <random>

#include "counted_loops.h"
#include "peak_beside.h"
#include "wide_vectors.h"
#include "workload.h"

namespace {

using crosstalk::models::Traffic;
using workload::Array;
using workload::Flags;
using workload::Truth;
using workload::vector_bytes;
using workload::vector_doubles;
using workload::vectors;
using Loop = workload::CountedLoop<struct Data>;

constexpr std::size_t row_bytes = 4096;  // of a stencil: three rows stay in the first level
constexpr std::size_t row_vectors = row_bytes / vector_bytes;
constexpr std::uint32_t bins = 1024;
constexpr std::uint32_t matrix_rows = 4096;

/// Rows of 5 to 40 entries, anywhere.
struct SparseMatrix {
  SparseMatrix() {
    std::mt19937 random(11);
    row_begin.push_back(0);
    for (std::uint32_t row = 0; row < matrix_rows; ++row) {
      const std::uint32_t entries = 5 + random() % 36;
      for (std::uint32_t i = 0; i < entries; ++i) {
        column.push_back(random() % matrix_rows);
      }
      row_begin.push_back(static_cast<std::uint32_t>(column.size()));
    }
    entry.assign(column.size(), 0.5);
  }
  std::vector<std::uint32_t> row_begin, column;
  std::vector<double> entry;
};

struct Data {
  /// Sizes in bytes of the arrays for each level.
  Data(std::size_t l1, std::size_t l2, std::size_t l3)
      : l1_a(l1), l1_b(l1), l2_a(l2), l2_b(l2 + 2 * row_bytes), l2_c(l2), l3_a(l3), l3_b(l3 + 2 * row_bytes), l3_c(l3) {
    std::mt19937 random(7);
    std::generate(keys.begin(), keys.end(), [&] { return static_cast<std::uint32_t>(random() % bins); });
  }
  Array l1_a, l1_b, l2_a, l2_b, l2_c, l3_a, l3_b, l3_c;
  std::vector<std::uint32_t> keys = std::vector<std::uint32_t>(1U << 16U);
  std::vector<std::uint32_t> bin = std::vector<std::uint32_t>(bins);
  SparseMatrix matrix;
  std::vector<double> x = std::vector<double>(matrix_rows, 1.0), y = std::vector<double>(matrix_rows);
  double sink = 0;
  std::uint64_t state = 88172645463325252U;
};

/// Four vectors of each array an iteration, in four sums.
CROSSTALK_WIDE std::uint64_t dot_product(Data& data, std::uint64_t n) {
  const std::size_t count = data.l2_a.count() / (4 * vector_doubles);
  const std::uint64_t rounds = n / count + 1;
  const auto* const a = vectors(data.l2_a.data());
  const auto* const b = vectors(data.l2_c.data());
  workload::Vector s0{}, s1{}, s2{}, s3{};
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < 4 * count; i += 4) {
      s0 += a[i] * b[i];
      s1 += a[i + 1] * b[i + 1];
      s2 += a[i + 2] * b[i + 2];
      s3 += a[i + 3] * b[i + 3];
    }
  }
  data.sink += (s0 + s1 + s2 + s3)[0];
  return rounds * count;
}

/// a = c + factor * (upper + middle + lower), of rows of b: four loads, a store, and 4 operations an element.
template <int level>
CROSSTALK_WIDE std::uint64_t stencil(Data& data, std::uint64_t n) {
  const Array& to = level == 2 ? data.l2_a : data.l3_a;
  const std::size_t count = to.count() / vector_doubles;
  const std::uint64_t rounds = n / count + 1;
  auto* const a = vectors(to.data());
  const auto* const b = vectors(level == 2 ? data.l2_b.data() : data.l3_b.data());
  const auto* const c = vectors(level == 2 ? data.l2_c.data() : data.l3_c.data());
  const workload::Vector factor = workload::Vector{} + 0.25;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      a[i] = c[i] + factor * (b[i] + b[i + row_vectors] + b[i + 2 * row_vectors]);
    }
  }
  return rounds * count;
}

/// Four vectors of each array an iteration.
CROSSTALK_WIDE std::uint64_t l1_scale(Data& data, std::uint64_t n) {
  const std::size_t count = data.l1_a.count() / (4 * vector_doubles);
  const std::uint64_t rounds = n / count + 1;
  auto* const a = vectors(data.l1_a.data());
  const auto* const b = vectors(data.l1_b.data());
  const workload::Vector factor = workload::Vector{} + 0.5;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < 4 * count; i += 4) {
      a[i] = b[i] * factor;
      a[i + 1] = b[i + 1] * factor;
      a[i + 2] = b[i + 2] * factor;
      a[i + 3] = b[i + 3] * factor;
    }
  }
  return rounds * count;
}

[[gnu::noinline]] std::uint64_t histogram(Data& data, std::uint64_t n) {
  const std::size_t count = data.keys.size();
  const std::uint64_t rounds = n / count + 1;
  const std::uint32_t* const keys = data.keys.data();
  std::uint32_t* const bin = data.bin.data();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      ++bin[keys[i]];
    }
  }
  return rounds * count;
}

/// Returns the entries that it has multiplied.
[[gnu::noinline]] std::uint64_t sparse_product(Data& data, std::uint64_t n) {
  const SparseMatrix& m = data.matrix;
  const std::uint64_t rounds = n / m.column.size() + 1;
  const std::uint32_t* const begin = m.row_begin.data();
  const std::uint32_t* const column = m.column.data();
  const double* const entry = m.entry.data();
  const double* const x = data.x.data();
  double* const y = data.y.data();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::uint32_t row = 0; row < matrix_rows; ++row) {
      double sum = 0;
      for (std::uint32_t k = begin[row]; k < begin[row + 1]; ++k) {
        sum += entry[k] * x[column[k]];
      }
      y[row] = sum;
    }
  }
  return rounds * m.column.size();
}

/// One in four steps is a collision. All operations are in registers.
[[gnu::noinline]] std::uint64_t particle_steps(Data& data, std::uint64_t n) {
  double place = data.sink, speed = 1;
  std::uint64_t x = data.state;
  for (std::uint64_t i = 0; i < n; ++i) {
    x ^= x << 13U, x ^= x >> 7U, x ^= x << 17U;
    place = place * 0.5 + speed;
    if ((x & 3U) == 0) {
      asm volatile("" : "+x"(place));  // so that it stays a branch
      speed = speed * 0.25 + place * 0.125 + 1.5;
      place = place * 0.75 - speed;
    }
  }
  data.sink = place + speed, data.state = x;
  return n;
}

constexpr double v = vector_bytes;
constexpr double lanes = vector_doubles;
constexpr double entry_bytes = 8 + 4 + 8;  // the entry, its column, and what it is multiplied with
constexpr double row_entries = 22.5;       // on average
// A row of the matrix also loads its end and stores a sum.
const std::vector<Loop> loops = {
    {"dot_product", dot_product, 2e8, 8 * lanes, 8 * v, 0, 8 * v},
    {"stencil<2>", stencil<2>, 4e8, 4 * lanes, 5 * v, 0, 4 * v},
    {"stencil<3>", stencil<3>, 2e8, 4 * lanes, 5 * v, 0, 4 * v},
    {"l1_scale", l1_scale, 8e8, 4 * lanes, 8 * v, 0, 0},
    {"histogram", histogram, 8e8, 0, 12, 0},
    {"sparse_product", sparse_product, 8e8, 2, entry_bytes + (4 + 8) / row_entries, 0},
    {"particle_steps", particle_steps, 2e8, 2 + 6 / 4.0, 0, 0},
};

// Limits of the loops that a unit with a peak limits.
const std::map<std::string, workload::Limit> limits = {
    {"dot_product", {"l2", Traffic::load}},
    {"stencil<2>", {"l2", Traffic::triad}},
    {"stencil<3>", {"l3", Traffic::triad}},
    {"l1_scale", {"l1d", Traffic::copy}},
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
  Flags flags("numeric_loops", "loops of numerical programs that count their own work");
  flags.number("--seconds", 10, 0.1, 3600, "CPU time of the thread")
      .number("--visit", 0.2, 0.001, 10, "about how long a visit of a loop lasts, s")
      .number("--l1", 11, 4, 1024, "KiB of each of the 2 arrays that L1D is to hold")
      .number("--l2", 96, 16, 65536, "KiB of each of the 3 arrays that L2 is to hold")
      .number("--l3", 3072, 16, 1048576, "KiB of each of the 3 arrays that L3 is to hold");
  flags.number("--peak", 0, 0, 1, "1: the unit that limits the loop of --only is measured in turns with it");
  flags.choice("--only", workload::names_of(loops), "the loop to run");
  flags.parse(argc, argv);
  workload::need_vectors(flags);
  const double begin = workload::thread_seconds();
  std::string counted;
  workload::run_crew(1, [&](int) {
    const auto kib = [&](const char* name) { return static_cast<std::size_t>(flags.integer(name)) << 10U; };
    Data data(kib("--l1"), kib("--l2"), kib("--l3"));
    counted = workload::run_with_peak(data, workload::chosen(loops, flags.word("--only")), flags.real("--seconds"),
                                      flags.real("--visit"), peak_of(flags));
  });
  Truth truth("numeric_loops", 2);
  truth.file = __FILE_NAME__;
  truth.print(workload::thread_seconds() - begin, counted);
}
