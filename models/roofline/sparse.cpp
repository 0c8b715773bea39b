// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/sparse.h"

#include <algorithm>
#include <cmath>

namespace crosstalk::models::roofline {
namespace {

constexpr double flops_per_nonzero = 2;                // one multiplication, one addition
constexpr double accesses_per_nonzero = 3;             // value, column, x
constexpr double accesses_per_row = 4;                 // two row pointers, y loaded and stored (table 1)
constexpr double index_bytes = 4;                      // of a column or of a row pointer
constexpr double row_bytes = 2 * index_bytes + 2 * 8;  // of a row of doubles: two pointers, y loaded and stored
constexpr std::uint32_t most_threads = 1 << 20;        // of nonzeros_by_thread: bounds its result

Result<double> finite(double value, const char* what) {
  if (!std::isfinite(value)) {
    return fail(ErrorCode::invalid_argument, std::string(what) + " is too large to compute with");
  }
  return value;
}

Result<void> check_matrix(const MatrixSize& matrix, double bytes_per_access) {
  if (matrix.nonzeros == 0 || matrix.rows == 0) {
    return fail(ErrorCode::invalid_argument, "the matrix has " + std::to_string(matrix.rows) + " rows and " +
                                                 std::to_string(matrix.nonzeros) +
                                                 " non-zeros; it must have at least one of each");
  }
  return check_positive({{"the number of bytes an access", bytes_per_access}});
}

Result<void> check_band(const Band& band, const Estimate& performance) {
  if (surely_below(band.best, band.worst)) {
    return fail(ErrorCode::invalid_argument, std::string("the band of ") + level_in_words(band.level) +
                                                 " has a worst above its best; measure the pair again");
  }
  return check_positive({NamedEstimate{"the loop's performance", performance}});
}

BandPosition position_in(const Band& band, const Estimate& performance) {
  if (surely_below(performance, band.worst)) {
    return BandPosition::below;
  }
  if (surely_below(band.best, performance)) {
    return BandPosition::above;
  }
  return performance.low() >= band.worst.high() && performance.high() <= band.best.low() ? BandPosition::inside
                                                                                         : BandPosition::undecided;
}

std::vector<Advice> advice_at(BandPosition position) {
  switch (position) {
    case BandPosition::below:
      return {Advice::reuse_vector, Advice::balance_load};
    case BandPosition::inside:
      return {Advice::reorder_matrix};
    case BandPosition::above:
      return {Advice::served_nearer};
    case BandPosition::undecided:
      break;
  }
  return {Advice::reorder_matrix, Advice::reuse_vector, Advice::balance_load};
}

}  // namespace

Result<GatherLoop> spmv_of_doubles(std::optional<double> nonzeros_per_row) {
  GatherLoop loop;
  if (nonzeros_per_row) {
    auto checked = check_positive({{"the number of non-zeros a row", *nonzeros_per_row}});
    if (checked && *nonzeros_per_row < 1) {
      checked = fail(ErrorCode::invalid_argument, "a row has less than one non-zero; leave empty rows out");
    }
    if (!checked) {
      return tl::unexpected<Error>(checked.error());
    }
    loop.outer_bytes = row_bytes / *nonzeros_per_row;
  }
  return loop;
}

Result<IntensityBracket> gather_bracket(const GatherLoop& loop) {
  auto checked = check_positive({{"the number of operations", loop.flops}, {"the bytes of a line", loop.line_bytes}});
  checked = checked ? check_not_negative({{"the number of streamed bytes", loop.streamed_bytes},
                                          {"the number of gathered elements", loop.gathered},
                                          {"the number of bytes of the loop around", loop.outer_bytes}})
                    : checked;
  const double least_bytes = loop.streamed_bytes + loop.outer_bytes;
  checked = checked ? check_positive({{"the number of bytes of the best case", least_bytes}}) : checked;
  if (!checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const double worst = loop.flops / (least_bytes + loop.gathered * loop.line_bytes);
  const auto best = finite(loop.flops / least_bytes, "the intensity of the best case");
  return best ? Result<IntensityBracket>(IntensityBracket{*best, worst}) : tl::unexpected<Error>(best.error());
}

Result<double> elements_that_fit(double capacity_bytes, double element_bytes) {
  auto checked = check_not_negative({{"the capacity", capacity_bytes}});
  checked = checked ? check_positive({{"the number of bytes an element", element_bytes}}) : checked;
  if (!checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return finite(capacity_bytes / element_bytes, "the number of elements");
}

Result<double> requested_bytes(const MatrixSize& matrix, double bytes_per_access) {
  if (auto checked = check_matrix(matrix, bytes_per_access); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const double accesses =
      accesses_per_nonzero * static_cast<double>(matrix.nonzeros) + accesses_per_row * static_cast<double>(matrix.rows);
  return finite(bytes_per_access * accesses, "the number of bytes");
}

Result<double> spmv_intensity(const MatrixSize& matrix, double bytes_per_access) {
  const auto bytes = requested_bytes(matrix, bytes_per_access);
  return bytes ? finite(flops_per_nonzero * static_cast<double>(matrix.nonzeros) / *bytes, "the intensity") : bytes;
}

Result<IntensityBracket> spmv_intensity_limits(double bytes_per_access) {
  if (auto checked = check_positive({{"the number of bytes an access", bytes_per_access}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const auto best = finite(flops_per_nonzero / (accesses_per_nonzero * bytes_per_access), "the intensity");
  if (!best) {
    return tl::unexpected<Error>(best.error());
  }
  return IntensityBracket{*best, flops_per_nonzero / ((accesses_per_nonzero + accesses_per_row) * bytes_per_access)};
}

Result<double> csr_bytes(const MatrixSize& matrix, double value_bytes) {
  if (auto checked = check_positive({{"the number of bytes a value", value_bytes}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const double pairs = static_cast<double>(matrix.nonzeros) + static_cast<double>(matrix.rows);  // of value and index
  return finite((value_bytes + index_bytes) * pairs + value_bytes * static_cast<double>(matrix.columns),
                "the number of bytes");
}

Result<Level> level_holding(double bytes, const CacheSizes& caches) {
  if (auto checked = check_not_negative({{"the number of bytes", bytes}}); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const auto holds = [bytes](std::uint64_t capacity) { return bytes <= static_cast<double>(capacity); };
  return holds(caches.l1d) ? Level::l1d : holds(caches.l2) ? Level::l2 : holds(caches.l3) ? Level::l3 : Level::memory;
}

std::string sparse_roof_name(Level matrix, Level vector) {
  return std::string("A in ") + level_in_words(matrix) + ", X in " + level_in_words(vector);
}

Result<BandVerdict> judge_band(const Band& band, const Estimate& performance) {
  if (auto checked = check_band(band, performance); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const BandPosition position = position_in(band, performance);
  Result<Estimate> gain = position == BandPosition::above
                              ? fail(ErrorCode::not_found, "the loop is faster than the best order of its level")
                              : gain_at(band.best, performance);
  return BandVerdict{position, std::move(gain), advice_at(position)};
}

Result<SpeedupParts> speedup_parts(double speedup, double used_before, double used_after) {
  if (auto checked = check_positive(
          {{"the speed-up", speedup}, {"the utilisation before", used_before}, {"the utilisation after", used_after}});
      !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const SpeedupParts parts{used_after / used_before, speedup / (used_after / used_before)};
  if (auto checked = check_positive({{"the balance factor", parts.balance}, {"the locality factor", parts.locality}});
      !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  return parts;
}

Result<std::vector<double>> nonzeros_by_thread(std::span<const std::uint32_t> row_starts, std::uint32_t threads) {
  if (row_starts.size() < 2 || threads == 0 || threads > most_threads) {
    return fail(ErrorCode::invalid_argument, "rows without starts, or " + std::to_string(threads) +
                                                 " threads: give one row and one thread at least");
  }
  if (!std::is_sorted(row_starts.begin(), row_starts.end())) {
    return fail(ErrorCode::invalid_argument, "the starts of rows do not ascend; the matrix is not in CSR format");
  }
  const std::size_t rows = row_starts.size() - 1;
  const std::size_t each = (rows + threads - 1) / threads;
  std::vector<double> nonzeros;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    const std::size_t first = std::min(rows, thread * each), last = std::min(rows, first + each);
    nonzeros.push_back(row_starts[last] - row_starts[first]);
  }
  return nonzeros;
}

}  // namespace crosstalk::models::roofline
