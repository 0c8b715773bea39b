// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/sparse_pattern.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace crosstalk::models::roofline {
namespace {

/// The numbers of the pair's construction that follow from a valid shape.
struct Strides {
  std::uint32_t stride;  // d: columns between the non-zeros of a row, and rows until the pattern repeats
  std::uint32_t lines;   // n: lines in a stride
};

Result<Strides> strides_of(const PairShape& shape) {
  const auto [p, q, columns, e] = shape;
  if (p == 0 || q == 0 || columns == 0 || e == 0) {
    return fail(ErrorCode::invalid_argument, "a size of the matrix pair is 0; all must be positive");
  }
  if (columns % q != 0 || columns / q % e != 0) {
    return fail(ErrorCode::invalid_argument, std::to_string(columns) + " columns do not divide into " +
                                                 std::to_string(q) + " strides of whole lines of " + std::to_string(e) +
                                                 " elements; give a multiple of both");
  }
  // Each factor is below 2^32, so neither product overflows.
  if (static_cast<std::uint64_t>(p) * columns > most_nonzeros) {
    return fail(ErrorCode::invalid_argument,
                "the matrix would have more than " + std::to_string(most_nonzeros) + " non-zeros; give fewer columns");
  }
  return Strides{columns / q, columns / q / e};
}

/// Offset of row r's non-zeros in their strides; a permutation of 0 to d - 1.
std::uint32_t offset_of(std::uint32_t row, const Strides& strides, std::uint32_t line_elements) {
  return line_elements * (row % strides.lines) + row / strides.lines;
}

template <class ColumnOf>
CsrPattern pattern_of(const PairShape& shape, std::uint32_t rows, const ColumnOf& column_of) {
  CsrPattern pattern;
  pattern.columns = shape.columns;
  pattern.row_starts.reserve(std::size_t{rows} + 1);
  pattern.column_of.reserve(std::size_t{rows} * shape.row_nonzeros);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t k = 0; k < shape.row_nonzeros; ++k) {
      pattern.column_of.push_back(column_of(row, k));
    }
    pattern.row_starts.push_back(static_cast<std::uint32_t>(pattern.column_of.size()));
  }
  return pattern;
}

/// The place of each number in an order; nullopt: the order is no permutation of 0 to count - 1.
std::optional<std::vector<std::uint32_t>> inverse_of(std::span<const std::uint32_t> order, std::size_t count) {
  constexpr std::uint32_t missing = std::numeric_limits<std::uint32_t>::max();
  if (order.size() != count) {
    return std::nullopt;
  }
  std::vector<std::uint32_t> places(count, missing);
  for (std::uint32_t place = 0; place < count; ++place) {
    if (order[place] >= count || places[order[place]] != missing) {
      return std::nullopt;
    }
    places[order[place]] = place;
  }
  return places;
}

bool well_formed(const CsrPattern& pattern) {
  return !pattern.row_starts.empty() && pattern.row_starts.front() == 0 &&
         pattern.row_starts.back() == pattern.column_of.size() &&
         std::is_sorted(pattern.row_starts.begin(), pattern.row_starts.end()) &&
         std::all_of(pattern.column_of.begin(), pattern.column_of.end(),
                     [&](std::uint32_t column) { return column < pattern.columns; });
}

}  // namespace

Result<CsrPattern> worst_pattern(const PairShape& shape) {
  const auto strides = strides_of(shape);
  if (!strides) {
    return tl::unexpected<Error>(strides.error());
  }
  return pattern_of(shape, shape.block_rows * strides->stride, [&](std::uint32_t row, std::uint32_t k) {
    return k * strides->stride + offset_of(row % strides->stride, *strides, shape.line_elements);
  });
}

Result<CsrPattern> best_pattern(const PairShape& shape) {
  const auto strides = strides_of(shape);
  if (!strides) {
    return tl::unexpected<Error>(strides.error());
  }
  return pattern_of(shape, shape.block_rows * strides->stride, [&](std::uint32_t row, std::uint32_t k) {
    return row / shape.block_rows * shape.row_nonzeros + k;
  });
}

Result<PairOrder> worst_to_best(const PairShape& shape) {
  const auto strides = strides_of(shape);
  if (!strides) {
    return tl::unexpected<Error>(strides.error());
  }
  PairOrder order;
  // Rows of the worst matrix that are d apart have the same columns: together they are one block.
  for (std::uint32_t block = 0; block < strides->stride; ++block) {
    for (std::uint32_t repeat = 0; repeat < shape.block_rows; ++repeat) {
      order.row_order.push_back(repeat * strides->stride + block);
    }
    for (std::uint32_t k = 0; k < shape.row_nonzeros; ++k) {
      order.column_order.push_back(k * strides->stride + offset_of(block, *strides, shape.line_elements));
    }
  }
  return order;
}

Result<CsrPattern> permuted(const CsrPattern& pattern, const PairOrder& order) {
  if (!well_formed(pattern)) {
    return fail(ErrorCode::invalid_argument, "the matrix is not in CSR format");
  }
  const auto columns = inverse_of(order.column_order, pattern.columns);
  if (!columns || !inverse_of(order.row_order, pattern.rows())) {
    return fail(ErrorCode::invalid_argument, "the order is no permutation of the matrix's rows and columns");
  }
  CsrPattern result;
  result.columns = pattern.columns;
  result.column_of.reserve(pattern.column_of.size());
  for (const std::uint32_t row : order.row_order) {
    const auto first = static_cast<std::ptrdiff_t>(result.column_of.size());
    for (std::uint32_t i = pattern.row_starts[row]; i < pattern.row_starts[row + 1]; ++i) {
      result.column_of.push_back((*columns)[pattern.column_of[i]]);
    }
    std::sort(result.column_of.begin() + first, result.column_of.end());
    result.row_starts.push_back(static_cast<std::uint32_t>(result.column_of.size()));
  }
  return result;
}

}  // namespace crosstalk::models::roofline
