// SPDX-License-Identifier: Apache-2.0
// Pairs of sparse matrices with the worst and the best locality of the vector that SpMV gathers. The best matrix is a
// permutation of the rows and columns of the worst one, so the two do the same work.
//
// Source: SPARCITY D1.2, 2.2.3, figs 10 and 11.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace crosstalk::models::roofline {

/// The best matrix has p x q dense blocks on its diagonal. In the worst one, non-zeros of a row are C/q columns apart,
/// and those of the next row lie a line further.
struct PairShape {
  std::uint32_t block_rows = 32;     ///< p: non-zeros of a column
  std::uint32_t row_nonzeros = 64;   ///< q: non-zeros of a row
  std::uint32_t columns = 4096;      ///< C: a multiple of q times e
  std::uint32_t line_elements = 16;  ///< e: elements of the vector in a line
};
/// More non-zeros than this are refused: their columns alone take 1 GiB.
inline constexpr std::uint64_t most_nonzeros = std::uint64_t{1} << 28;

/// Places of the non-zeros in CSR format: row r has the columns from column_of[row_starts[r]] to
/// column_of[row_starts[r + 1] - 1], ascending.
struct CsrPattern {
  std::uint32_t columns = 0;
  std::vector<std::uint32_t> row_starts = {0};
  std::vector<std::uint32_t> column_of;
  [[nodiscard]] std::size_t rows() const { return row_starts.size() - 1; }
  bool operator==(const CsrPattern&) const = default;
};

/// p C/q rows. With d = C/q and n = d/e, row r < d has the columns k d + e (r mod n) + floor(r/n), k < q; the d rows
/// repeat p times. Refuses shapes in which d is no whole multiple of e, and those of more than `most_nonzeros`.
[[nodiscard]] Result<CsrPattern> worst_pattern(const PairShape& shape);
/// C/q blocks of p x q on the diagonal, of the same size. Refuses the same shapes.
[[nodiscard]] Result<CsrPattern> best_pattern(const PairShape& shape);

/// Row i and column j of the best matrix are row row_order[i] and column column_order[j] of the worst one.
struct PairOrder {
  std::vector<std::uint32_t> row_order, column_order;
};
[[nodiscard]] Result<PairOrder> worst_to_best(const PairShape& shape);
/// The matrix with rows and columns in that order. Refuses orders that are not permutations of its rows and columns.
[[nodiscard]] Result<CsrPattern> permuted(const CsrPattern& pattern, const PairOrder& order);

}  // namespace crosstalk::models::roofline
