// SPDX-License-Identifier: Apache-2.0
// Places a sparse matrix in the roofline of sparse matrix-vector multiplication (SpMV), by its shape alone.
#pragma once

#include <optional>
#include <string>

#include "driver/roofline/matrix_market.h"
#include "driver/terminal/canvas.h"
#include "models/machine.h"

namespace crosstalk::driver {

/// Figures that follow from a matrix's shape, for CSR with double values and indices of 4 bytes.
struct MatrixPlace {
  std::string name;
  models::roofline::MatrixSize size;
  double mean_row = 0, longest_row = 0;                 // entries
  double bytes = 0;                                     // of the matrix and both vectors
  double requested_intensity = 0;                       // flop/B that the core requests (models/roofline/sparse.h)
  models::roofline::IntensityBracket memory_intensity;  // flop/B from memory, if x is in a cache, and if each entry
                                                        // brings a line of its own
  std::uint32_t threads = 1;
  double utilisation = 1;  // mean number of threads at work, if each gets as many rows
  // By the machine's memory, for `threads` threads; absent without a calibration, or with more threads than cores.
  std::optional<double> best_rate, worst_rate;  // flop/s
  std::optional<models::Level> held_in;         // the nearest level that holds matrix and vectors, of one core's caches
};

/// `machine` null: only the figures that need none. `threads` absent: one on each core. Fails if a formula does not
/// apply.
[[nodiscard]] Result<MatrixPlace> place_of_matrix(const SparseShape& shape, const std::string& name,
                                                  const models::Machine* machine,
                                                  std::optional<std::uint32_t> threads = {});

[[nodiscard]] std::string render_matrix_text(const MatrixPlace& place, TextStyle style);
/// One JSON object: "crosstalk.matrix/1" of docs/roofline-json.md.
[[nodiscard]] std::string render_matrix_json(const MatrixPlace& place);

}  // namespace crosstalk::driver
