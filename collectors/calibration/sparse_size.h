// SPDX-License-Identifier: Apache-2.0
// Matrices that fill a level of the memory hierarchy, with the vector in the same or a nearer one.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "models/roofline/sparse_pattern.h"

namespace crosstalk::collectors::calibration {

/// A dense matrix in CSR format.
struct DenseSize {
  std::uint32_t rows = 0, columns = 0;
};
/// Columns whose vector stays in a level: 64 for the first one, else so many that a row with its vector fills
/// `vector_bytes`, a working set of that level. Rows so that all is in `matrix_bytes`. Refused if no row fits.
[[nodiscard]] Result<DenseSize> dense_size(std::uint64_t matrix_bytes, std::uint64_t vector_bytes, bool vector_in_l1d);

/// The shape of a pair of doubles with `row_nonzeros` that is in `bytes`, with 4 non-zeros a column, so that the vector
/// is a seventh of it. Refused if none is so small.
[[nodiscard]] Result<models::roofline::PairShape> pair_shape(std::uint64_t bytes, std::uint32_t row_nonzeros);

/// Bytes of matrix, x and y.
[[nodiscard]] std::uint64_t bytes_in_memory(std::uint64_t rows, std::uint64_t columns, std::uint64_t nonzeros);

}  // namespace crosstalk::collectors::calibration
