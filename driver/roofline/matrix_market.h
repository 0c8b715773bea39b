// SPDX-License-Identifier: Apache-2.0
// Reads the shape of a sparse matrix from a Matrix Market file (Boisvert, Pozo, Remington, "The Matrix Market Exchange
// Formats", NISTIR 5935, 1996): its size and the number of entries of each row. Values are not kept.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/roofline/sparse.h"

namespace crosstalk::driver {

struct SparseShape {
  models::roofline::MatrixSize size;
  std::vector<std::uint32_t> row_starts;  // each row's first entry, and the number of entries at the end
};

/// In a symmetric, skew-symmetric or Hermitian file, an entry off the diagonal counts twice. Errors give `name`, the
/// file's, and the number of the line. Refuses dense files, places outside the matrix, no entries, another number of
/// entries than the file promises, and files of more than 2^28 rows, columns or entries.
[[nodiscard]] Result<SparseShape> read_matrix_market(std::istream& input, const std::string& name);

}  // namespace crosstalk::driver
