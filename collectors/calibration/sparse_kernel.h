// SPDX-License-Identifier: Apache-2.0
// The product of a sparse matrix and a vector. In assembly, as flop_kernels.h, so that it loads and stores what it
// says.
#pragma once

#include <cstdint>

namespace crosstalk::collectors::calibration {

/// In CSR format: row r has the non-zeros row_starts[r] to row_starts[r + 1] - 1.
struct CsrMatrix {
  std::uint64_t rows = 0;  // not 0
  const std::uint32_t* row_starts = nullptr;
  const std::uint32_t* columns = nullptr;
  const double* values = nullptr;
};

/// y += A x, `passes` times, once at least, one non-zero after the other. Of each row two starts are loaded, and y is
/// loaded and stored; of each non-zero its column, its value and an element of x are loaded.
void multiply(const CsrMatrix& a, const double* x, double* y, std::uint64_t passes);

/// Bytes that one pass loads and stores, and its operations.
[[nodiscard]] constexpr double multiplied_bytes(double rows, double nonzeros) { return 24 * rows + 20 * nonzeros; }
[[nodiscard]] constexpr double multiplied_flops(double nonzeros) { return 2 * nonzeros; }

}  // namespace crosstalk::collectors::calibration
