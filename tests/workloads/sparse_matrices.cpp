// SPDX-License-Identifier: Apache-2.0
// A sparse matrix of a kind (banded, random, power law, shuffled band, blocks), the same in the order of Cuthill and
// McKee, and the pair of matrices with the worst and the best locality that has about as many non-zeros a row and as
// many columns. Multiplies with all four in turns and prints the median of each one's flops a second.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collectors/calibration/sparse_kernel.h"
#include "models/roofline/sparse_pattern.h"
#include "workload.h"

namespace {

namespace calibration = crosstalk::collectors::calibration;
namespace roofline = crosstalk::models::roofline;
using roofline::CsrPattern;
using workload::Flags;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Rows {
 public:
  explicit Rows(std::uint32_t columns) { pattern_.columns = columns; }
  void add(std::vector<std::uint32_t> columns) {
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    pattern_.column_of.insert(pattern_.column_of.end(), columns.begin(), columns.end());
    pattern_.row_starts.push_back(static_cast<std::uint32_t>(pattern_.column_of.size()));
  }
  [[nodiscard]] CsrPattern take() { return std::move(pattern_); }

 private:
  CsrPattern pattern_;
};

std::vector<std::uint32_t> row_of(const std::string& kind, std::uint32_t row, std::uint32_t n, std::uint32_t q,
                                  std::mt19937& random) {
  std::vector<std::uint32_t> columns;
  std::uniform_real_distribution<double> even(0, 1);
  for (std::uint32_t k = 0; k < q; ++k) {
    if (kind == "banded" || kind == "shuffled") {
      columns.push_back((row + n + k - q / 2) % n);
    } else if (kind == "blocks") {
      columns.push_back(row / q * q % (n - q) + k);
    } else if (kind == "power_law") {
      columns.push_back(static_cast<std::uint32_t>((n - 1) * std::pow(even(random), 4)));
    } else {
      columns.push_back(random() % n);
    }
  }
  return columns;
}

CsrPattern matrix_of(const std::string& kind, std::uint32_t n, std::uint32_t q) {
  std::mt19937 random(9);
  Rows rows(n);
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::vector<std::uint32_t> renamed = order;
  if (kind == "shuffled") {
    std::shuffle(order.begin(), order.end(), random);
    std::shuffle(renamed.begin(), renamed.end(), random);
  }
  for (const std::uint32_t row : order) {
    std::vector<std::uint32_t> columns = row_of(kind, row, n, q, random);
    for (std::uint32_t& column : columns) {
      column = renamed[column];
    }
    rows.add(std::move(columns));
  }
  return rows.take();
}

/// The rows of each column, as a matrix.
CsrPattern transposed(const CsrPattern& a) {
  std::vector<std::vector<std::uint32_t>> rows_of(a.columns);
  for (std::uint32_t row = 0; row < a.rows(); ++row) {
    for (std::uint32_t i = a.row_starts[row]; i < a.row_starts[row + 1]; ++i) {
      rows_of[a.column_of[i]].push_back(row);
    }
  }
  Rows columns(static_cast<std::uint32_t>(a.rows()));
  for (std::vector<std::uint32_t>& rows : rows_of) {
    columns.add(std::move(rows));
  }
  return columns.take();
}

/// Goes through the graph of rows and columns in breadth, from rows with few entries and by few entries first.
class CuthillMcKee {
 public:
  explicit CuthillMcKee(const CsrPattern& a)
      : sides_{a, transposed(a)}, number_of_{Numbers(a.rows()), Numbers(a.columns)} {
    std::vector<std::uint32_t> begins(a.rows());
    std::iota(begins.begin(), begins.end(), 0U);
    by_length(0, begins);
    for (const std::uint32_t row : begins) {
      from(row);
    }
  }
  /// The matrix with rows and columns in the reverse of that order.
  [[nodiscard]] CsrPattern reversed() const {
    std::vector<std::uint32_t> number(sides_[0].columns);
    for (std::uint32_t i = 0; i < number.size(); ++i) {
      number[i] = number_of_[1][i] ? static_cast<std::uint32_t>(number.size()) - *number_of_[1][i] - 1 : 0;
    }
    Rows rows(sides_[0].columns);
    for (auto row = order_.rbegin(); row != order_.rend(); ++row) {
      std::vector<std::uint32_t> columns;
      for (std::uint32_t i = sides_[0].row_starts[*row]; i < sides_[0].row_starts[*row + 1]; ++i) {
        columns.push_back(number[sides_[0].column_of[i]]);
      }
      rows.add(std::move(columns));
    }
    return rows.take();
  }

 private:
  struct Numbers : std::vector<std::optional<std::uint32_t>> {
    explicit Numbers(std::size_t count) : vector(count) {}
    std::uint32_t given = 0;
    bool give(std::uint32_t i) {
      const bool first = !(*this)[i];
      (*this)[i] = first ? given++ : *(*this)[i];
      return first;
    }
  };

  void by_length(int side, std::vector<std::uint32_t>& lines) const {
    const auto& starts = sides_[side].row_starts;
    std::stable_sort(lines.begin(), lines.end(), [&](std::uint32_t a, std::uint32_t b) {
      return starts[a + 1] - starts[a] < starts[b + 1] - starts[b];
    });
  }
  void from(std::uint32_t row) {
    if (!number_of_[0].give(row)) {
      return;
    }
    order_.push_back(row);
    std::vector<std::pair<int, std::uint32_t>> queue{{0, row}};
    for (std::size_t head = 0; head < queue.size(); ++head) {
      const auto [side, line] = queue[head];
      const CsrPattern& of = sides_[side];
      std::vector<std::uint32_t> next(of.column_of.begin() + of.row_starts[line],
                                      of.column_of.begin() + of.row_starts[line + 1]);
      by_length(1 - side, next);
      for (const std::uint32_t other : next) {
        if (number_of_[1 - side].give(other)) {
          queue.emplace_back(1 - side, other);
          if (side == 1) {
            order_.push_back(other);
          }
        }
      }
    }
  }

  std::array<CsrPattern, 2> sides_;  // by row, by column
  std::array<Numbers, 2> number_of_;
  std::vector<std::uint32_t> order_;
};

/// Threads' worth of work at a time if so many threads take equal numbers of rows.
double utilisation(const CsrPattern& a, std::size_t threads) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < threads; ++i) {
    most = std::max(most, a.row_starts[a.rows() * (i + 1) / threads] - a.row_starts[a.rows() * i / threads]);
  }
  return static_cast<double>(a.column_of.size()) / most;
}

void print(const CsrPattern& a) {
  std::printf("%%%%MatrixMarket matrix coordinate pattern general\n%zu %u %zu\n", a.rows(), a.columns,
              a.column_of.size());
  for (std::size_t row = 0; row < a.rows(); ++row) {
    for (std::uint32_t i = a.row_starts[row]; i < a.row_starts[row + 1]; ++i) {
      std::printf("%zu %u\n", row + 1, a.column_of[i] + 1);
    }
  }
}

class Product {
 public:
  explicit Product(CsrPattern pattern)
      : pattern_(std::move(pattern)),
        values_(pattern_.column_of.size(), 1.0),
        x_(pattern_.columns, 1.0),
        y_(pattern_.rows()) {}
  /// Flops a second of some passes, by the thread's CPU clock.
  double rate(double seconds) {
    const calibration::CsrMatrix a{pattern_.rows(), pattern_.row_starts.data(), pattern_.column_of.data(),
                                   values_.data()};
    double passes = 0;
    const double begin = cpu_seconds();
    do {
      calibration::multiply(a, x_.data(), y_.data(), 1);
      ++passes;
    } while (cpu_seconds() - begin < seconds);
    return passes * calibration::multiplied_flops(static_cast<double>(values_.size())) / (cpu_seconds() - begin);
  }
  [[nodiscard]] const CsrPattern& pattern() const { return pattern_; }

 private:
  CsrPattern pattern_;
  std::vector<double> values_, x_, y_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("sparse_matrices", "a sparse matrix between the worst and the best of its size");
  flags.number("--columns", 65536, 64, 4194304, "columns and rows")
      .number("--row", 16, 1, 4096, "non-zeros of a row, about")
      .number("--turns", 9, 1, 1000, "measurements of each matrix")
      .number("--seconds", 0.02, 0.001, 10, "of a measurement");
  flags.choice("--kind", {"banded", "random", "power_law", "shuffled", "blocks"}, "of the matrix")
      .choice("--print", {"rates", "matrix"}, "the matrix as a Matrix Market file, without measuring");
  flags.parse(argc, argv);
  const auto row = static_cast<std::uint32_t>(flags.integer("--row"));
  constexpr std::uint32_t line_elements = 8;
  const std::uint32_t grain = row * line_elements;
  const auto columns =
      std::max<std::uint32_t>(1, static_cast<std::uint32_t>(flags.integer("--columns")) / grain) * grain;
  Product matrix(matrix_of(flags.word("--kind"), columns, row));
  if (flags.word("--print") == "matrix") {
    print(matrix.pattern());
    return 0;
  }
  Product reordered(CuthillMcKee(matrix.pattern()).reversed());
  // As many rows: p columns' non-zeros are q rows' ones.
  const roofline::PairShape shape{row, row, columns, line_elements};
  auto worst_pattern = roofline::worst_pattern(shape);
  auto best_pattern = roofline::best_pattern(shape);
  if (!worst_pattern || !best_pattern) {
    flags.refuse((worst_pattern ? best_pattern : worst_pattern).error().message);
  }
  Product worst(std::move(*worst_pattern)), best(std::move(*best_pattern));
  std::vector<double> of_matrix, of_reordered, of_worst, of_best;
  for (int turn = 0; turn < flags.integer("--turns"); ++turn) {
    of_matrix.push_back(matrix.rate(flags.real("--seconds")));
    of_reordered.push_back(reordered.rate(flags.real("--seconds")));
    of_worst.push_back(worst.rate(flags.real("--seconds")));
    of_best.push_back(best.rate(flags.real("--seconds")));
  }
  std::printf(R"({"rows":%zu,"columns":%u,"nonzeros":%zu,"flops_per_s":%.6g,"reordered":%.6g,"worst":%.6g,"best":%.6g,)"
              R"("utilisation_of_8":%.6f})"
              "\n",
              matrix.pattern().rows(), columns, matrix.pattern().column_of.size(), median(of_matrix),
              median(of_reordered), median(of_worst), median(of_best), utilisation(matrix.pattern(), 8));
}
