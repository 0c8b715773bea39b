// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/sparse_size.h"

#include <algorithm>

namespace crosstalk::collectors::calibration {
namespace {

constexpr std::uint64_t of_nonzero = 12, of_row = 12, of_column = 8;  // bytes: value and column; start and y; x
constexpr std::uint32_t line_elements = 8;

}  // namespace

std::uint64_t bytes_in_memory(std::uint64_t rows, std::uint64_t columns, std::uint64_t nonzeros) {
  return of_nonzero * nonzeros + of_row * rows + of_column * columns + sizeof(std::uint32_t);
}

Result<DenseSize> dense_size(std::uint64_t matrix_bytes, std::uint64_t vector_bytes, bool vector_in_l1d) {
  constexpr std::uint64_t columns_in_l1d = 64;
  const std::uint64_t columns =
      vector_in_l1d ? columns_in_l1d : vector_bytes / (of_nonzero + of_column + 1) / line_elements * line_elements;
  const std::uint64_t without_rows = bytes_in_memory(0, columns, 0);
  if (columns == 0 || matrix_bytes < without_rows + of_nonzero * columns + of_row) {
    return fail(ErrorCode::unsupported, "no row of the matrix fits in this level");
  }
  const std::uint64_t rows = (matrix_bytes - without_rows) / (of_nonzero * columns + of_row);
  if (rows * columns > models::roofline::most_nonzeros) {
    return fail(ErrorCode::unsupported, "a matrix that fills this level has too many non-zeros");
  }
  return DenseSize{static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns)};
}

Result<models::roofline::PairShape> pair_shape(std::uint64_t bytes, std::uint32_t row_nonzeros) {
  constexpr std::uint64_t column_nonzeros = 4;
  const std::uint64_t grain = std::uint64_t{line_elements} * row_nonzeros;
  const auto needed = [&](std::uint64_t columns, std::uint64_t p) {
    return bytes_in_memory(p * columns / row_nonzeros, columns, p * columns);
  };
  std::uint64_t columns =
      std::max(grain, bytes / (of_column + column_nonzeros * (of_nonzero + of_row)) / grain * grain);
  while (needed(columns + grain, column_nonzeros) <= bytes) {
    columns += grain;
  }
  std::uint64_t p = column_nonzeros;
  while (p > 1 && needed(columns, p) > bytes) {
    --p;
  }
  if (needed(columns, p) > bytes || columns * p > models::roofline::most_nonzeros) {
    return fail(ErrorCode::unsupported, "no pair of matrices is of the size of this level");
  }
  return models::roofline::PairShape{static_cast<std::uint32_t>(p), row_nonzeros, static_cast<std::uint32_t>(columns),
                                     line_elements};
}

}  // namespace crosstalk::collectors::calibration
