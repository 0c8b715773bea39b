// SPDX-License-Identifier: Apache-2.0
// The rates of products of a sparse matrix and a vector from each level: dense matrices, and pairs with the worst
// and the best locality.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/clock.h"
#include "collectors/calibration/bench.h"
#include "collectors/calibration/sparse_kernel.h"
#include "collectors/calibration/sparse_size.h"
#include "collectors/calibration/working_set.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Level;
using models::Scope;
using models::roofline::CsrPattern;
using models::roofline::PairShape;

constexpr std::array<std::uint32_t, 2> band_nonzeros = {8, 64};
constexpr std::size_t vectors_of_levels = 1 + 2 + 3 + 4;  // each level's matrix with vectors in it and in nearer ones

/// The places of non-zeros, of a dense matrix or of a pattern.
struct Places {
  std::uint32_t rows = 0, columns = 0;
  std::uint64_t nonzeros = 0;
  const CsrPattern* pattern = nullptr;  // null: dense

  [[nodiscard]] std::uint32_t start(std::uint64_t row) const {
    return pattern != nullptr ? pattern->row_starts[row] : static_cast<std::uint32_t>(row * columns);
  }
  [[nodiscard]] std::uint32_t column(std::uint64_t nonzero) const {
    return pattern != nullptr ? pattern->column_of[nonzero] : static_cast<std::uint32_t>(nonzero % columns);
  }
};

/// A matrix and its vectors, in one core's memory.
struct Product {
  CsrMatrix a;
  double* x = nullptr;
  double* y = nullptr;
};

/// The parts of `memory`, each at the begin of a line.
class Parts {
 public:
  explicit Parts(std::byte* memory) : next_(memory) {}
  template <class Element>
  Element* take(std::uint64_t count) {
    constexpr std::uint64_t line = 64;
    auto* const part = reinterpret_cast<Element*>(next_);
    next_ += (count * sizeof(Element) + line - 1) / line * line;
    return part;
  }

 private:
  std::byte* next_;
};

/// Lays a product out; nullopt: not in time.
std::optional<Product> lay_out(std::byte* memory, const Places& places, std::uint64_t deadline_ns) {
  constexpr std::uint64_t between_looks = 1U << 20;
  Parts parts(memory);
  auto* const values = parts.take<double>(places.nonzeros);
  auto* const columns = parts.take<std::uint32_t>(places.nonzeros);
  auto* const starts = parts.take<std::uint32_t>(std::uint64_t{places.rows} + 1);
  auto* const x = parts.take<double>(places.columns);
  auto* const y = parts.take<double>(places.rows);
  for (std::uint64_t i = 0; i < places.nonzeros; ++i) {
    if (i % between_looks == 0 && monotonic_ns() > deadline_ns) {
      return std::nullopt;
    }
    values[i] = 1;
    columns[i] = places.column(i);
  }
  for (std::uint64_t row = 0; row <= places.rows; ++row) {
    starts[row] = places.start(row);
  }
  std::fill(x, x + places.columns, 1.0);
  std::fill(y, y + places.rows, 0.0);
  return Product{{places.rows, starts, columns, values}, x, y};
}

class Sparse {
 public:
  Sparse(Bench& bench, Scope scope) : bench_(bench), team_(bench.team(scope)), cpus_(bench.cpus_of(scope)) {}

  [[nodiscard]] Result<std::uint64_t> bytes_of(Level level) const {
    return working_set(bench_.machine, level, cpus_, bench_.available(), bench_.beyond_caches);
  }

  /// Seconds for each unit of `units` a pass, of all cores; their matrices are alike.
  models::Figure rate(Level level, const Places& places, double units, const std::string& method) {
    std::vector<std::optional<Product>> products(team_.size());
    HeldMemory of_cache;
    HeldMemory& memory = level == Level::memory ? bench_.memory : of_cache;
    memory.expect(cpus_);
    const std::uint64_t ready_ns = bench_.preparation_deadline_ns();
    team_.run([&](unsigned member) {
      const std::uint64_t bytes = bytes_in_memory(places.rows, places.columns, places.nonzeros) + arrays_slack;
      const auto block = memory.block(cpus_[member], bytes, ready_ns);
      products[member] = block ? lay_out((*block)->data(), places, ready_ns) : std::nullopt;
    });
    if (std::any_of(products.begin(), products.end(), [](const auto& product) { return !product; })) {
      bench_.schedule.skip();
      return refused("the matrix was not laid out in time: the machine is too busy", method);
    }
    const auto run = [&](unsigned member, std::uint64_t passes) {
      const Product& product = *products[member];
      multiply(product.a, product.x, product.y, passes);
    };
    const Effort effort = bench_.next_figure();
    std::uint64_t passes = 0;
    bench_.one.run([&](unsigned) { passes = rounds_for(effort, [&](std::uint64_t n) { run(0, n); }); });
    return rate_figure(collect(effort,
                               [&] {
                                 return seconds_together(team_, units * static_cast<double>(passes),
                                                         [&](unsigned member) { run(member, passes); });
                               }),
                       method);
  }

 private:
  Bench& bench_;
  Team& team_;
  std::vector<std::uint32_t> cpus_;
};

models::SparseRoof roof_of(Bench& bench, Scope scope, Level matrix, Level vector) {
  const std::string method = "SpMV of a dense matrix in CSR format";
  models::SparseRoof roof{matrix, vector, scope, 1, {}};
  Sparse sparse(bench, scope);
  const auto matrix_bytes = sparse.bytes_of(matrix), vector_bytes = sparse.bytes_of(vector);
  const Result<DenseSize> size =
      !matrix_bytes  ? tl::unexpected<Error>(matrix_bytes.error())
      : vector_bytes ? dense_size(*matrix_bytes, std::min(*vector_bytes, *matrix_bytes), vector == Level::l1d)
                     : tl::unexpected<Error>(vector_bytes.error());
  if (!size) {
    bench.schedule.skip();
    roof.bytes_per_s = refused(size.error().message, method);
    return roof;
  }
  roof.columns = size->columns;
  const Places places{size->rows, size->columns, std::uint64_t{size->rows} * size->columns, nullptr};
  const double bytes = multiplied_bytes(size->rows, static_cast<double>(places.nonzeros));
  roof.bytes_per_s = sparse.rate(matrix, places, bytes, method + " of " + std::to_string(size->rows) + " rows");
  return roof;
}

models::SparseBand band_of(Bench& bench, Scope scope, Level level, std::uint32_t nonzeros) {
  const std::string method = "SpMV of a matrix of a pair, permutations of each other";
  models::SparseBand band{level, nonzeros, scope, 1, 1, {}, {}};
  Sparse sparse(bench, scope);
  const auto bytes = sparse.bytes_of(level);
  const Result<PairShape> shape = bytes ? pair_shape(*bytes, nonzeros) : tl::unexpected<Error>(bytes.error());
  if (!shape) {
    bench.schedule.skip();
    bench.schedule.skip();
    band.worst = band.best = refused(shape.error().message, method);
    return band;
  }
  const auto measured = [&](const Result<CsrPattern>& pattern) {
    if (!pattern) {
      bench.schedule.skip();
      return refused(pattern.error().message, method);
    }
    band.columns = pattern->columns;
    band.rows = static_cast<std::uint32_t>(pattern->rows());
    const Places places{band.rows, band.columns, pattern->column_of.size(), &*pattern};
    return sparse.rate(level, places, multiplied_flops(static_cast<double>(places.nonzeros)), method);
  };
  band.worst = measured(models::roofline::worst_pattern(*shape));
  band.best = measured(models::roofline::best_pattern(*shape));
  return band;
}

}  // namespace

std::size_t count_sparse_roofs() { return models::names<Scope>().size() * vectors_of_levels; }

std::size_t count_sparse_bands() {
  return models::names<Scope>().size() * 2 * models::all_levels.size() * band_nonzeros.size();
}

std::vector<models::SparseRoof> measure_sparse_roofs(Bench& bench) {
  std::vector<models::SparseRoof> roofs;
  for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
    bench.progress(scope == Scope::one_core ? "sparse products on one core" : "sparse products on all cores");
    for (const Level matrix : models::all_levels) {
      for (const Level vector : models::all_levels) {
        if (vector <= matrix) {
          roofs.push_back(roof_of(bench, scope, matrix, vector));
        }
      }
    }
  }
  return roofs;
}

std::vector<models::SparseBand> measure_sparse_bands(Bench& bench) {
  std::vector<models::SparseBand> bands;
  for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
    bench.progress(scope == Scope::one_core ? "bands of sparse products on one core"
                                            : "bands of sparse products on all cores");
    for (const Level level : models::all_levels) {
      for (const std::uint32_t nonzeros : band_nonzeros) {
        bands.push_back(band_of(bench, scope, level, nonzeros));
      }
    }
  }
  return bands;
}

}  // namespace crosstalk::collectors::calibration
