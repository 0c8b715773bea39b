// SPDX-License-Identifier: Apache-2.0
// Roofline models of sparse matrix-vector multiplication (SpMV) and of other loops that gather: best and worst traffic,
// intensity, roofs, bands of what reordering may gain. sparse_pattern.h makes matrices for them.
//
// Source: SPARCITY D1.2, 2.1.2 (ORM) and 2.2 (sparse CARM); equations, tables and figures are named where they are
// used.
//
// Limits: in the smallest matrices neighbouring rows share lines, which hides the gap between best and worst; no roof
// knows load balance.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/roofline/verdict.h"
#include "models/stream_traffic.h"

namespace crosstalk::models::roofline {

/// One iteration of a loop that gathers: loads elements at addresses that were loaded.
struct GatherLoop {
  double flops = 2;
  double streamed_bytes = 12;  ///< of arrays that are read in order; of CSR with double values: value and column
  double gathered = 1;         ///< elements
  double line_bytes = 64;
  double outer_bytes = 0;  ///< an iteration's part of what the loop around moves
};
/// SpMV of a CSR matrix with double values. The source ignores y and the row pointers; here a row moves 24 bytes: two
/// pointers of 4, y loaded and stored. `nonzeros_per_row` at least 1; absent: the source's model.
[[nodiscard]] Result<GatherLoop> spmv_of_doubles(std::optional<double> nonzeros_per_row = {});

/// flop/B from memory if all gathered elements are in a cache (best), and if each brings a line of its own (worst).
struct IntensityBracket {
  double best = 0, worst = 0;
};
/// 2.1.2, for any loop that gathers. Fails if the best case moves nothing.
[[nodiscard]] Result<IntensityBracket> gather_bracket(const GatherLoop& loop);

/// The number of elements whose data fill a capacity: capacity / bytes of an element. Beyond it, roofs of that level do
/// not bound (2.1.2 and its footnote 14). The result is not rounded.
[[nodiscard]] Result<double> elements_that_fit(double capacity_bytes, double element_bytes);

/// Dimensions of a matrix in CSR format.
struct MatrixSize {
  std::uint64_t rows = 0, columns = 0, nonzeros = 0;
};
/// beta (3 N_nnz + 4 N_rows): bytes that a core requests, with beta bytes an access on average (table 1, eq. 3).
[[nodiscard]] Result<double> requested_bytes(const MatrixSize& matrix, double bytes_per_access);
/// 2 / (beta (3 + 4 N_rows / N_nnz)), flop/B (eqs 3 and 4).
[[nodiscard]] Result<double> spmv_intensity(const MatrixSize& matrix, double bytes_per_access);
/// For one non-zero a row, and for infinitely many: 2 / (7 beta), 2 / (3 beta) (table 1).
[[nodiscard]] Result<IntensityBracket> spmv_intensity_limits(double bytes_per_access);
/// Bytes of a matrix, of x and of y, with v bytes a value and 4 an index: (v + 4) N_nnz + (v + 4) N_rows + v N_columns.
/// For square matrices with single precision 8 N_nnz + 12 N_rows, which is fitted to table 2.
[[nodiscard]] Result<double> csr_bytes(const MatrixSize& matrix, double value_bytes);
/// The nearest level that holds so many bytes; memory if no cache does.
[[nodiscard]] Result<Level> level_holding(double bytes, const CacheSizes& caches);

/// "A in L2, X in L1D": a roof that was measured with the matrix in one level and the vector in another (2.2.1).
[[nodiscard]] std::string sparse_roof_name(Level matrix, Level vector);

/// The performance that matrices of one size reach by the order of their rows and columns: the range that reordering
/// may change (2.2.3, figs 12 and 14). flop/s of the same kernel and threads, measured with a pair of sparse_pattern.h.
struct Band {
  Level level = Level::memory;  ///< that holds the matrix
  Estimate worst, best;
};
enum class BandPosition : std::uint8_t { below, inside, above, undecided };
struct BandVerdict {
  BandPosition position = BandPosition::undecided;
  /// P_best / P, at least 1: reordering gains no more. Absent above the band, where it can gain nothing.
  Result<Estimate> gain_bound;
  std::vector<Advice> advice;
};
/// Inside: reorder. Below: reuse of the vector, load balance. Above: data come from a nearer level already. Undecided
/// if the performance spans an edge of the band. No order is a promise: the source measured several slowdowns. Fails if
/// the worst is surely above the best, or the performance may be 0.
[[nodiscard]] Result<BandVerdict> judge_band(const Band& band, const Estimate& performance);

/// The speed-up of a reordered matrix, as a product: threads used after and before, and what locality changed. Derived.
struct SpeedupParts {
  double balance = 1;   ///< U_after / U_before
  double locality = 1;  ///< the speed-up over `balance`; above 1: the accesses became faster
};
/// `utilisation`s of ceilings.h, or measured core utilisations.
[[nodiscard]] Result<SpeedupParts> speedup_parts(double speedup, double used_before, double used_after);

/// Non-zeros of each thread if threads get equal numbers of successive rows, the last ones the rest. `row_starts`: of
/// each row and one past the last.
[[nodiscard]] Result<std::vector<double>> nonzeros_by_thread(std::span<const std::uint32_t> row_starts,
                                                             std::uint32_t threads);

}  // namespace crosstalk::models::roofline
