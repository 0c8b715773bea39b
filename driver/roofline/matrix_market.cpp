// SPDX-License-Identifier: Apache-2.0
#include "driver/roofline/matrix_market.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/number.h"

namespace crosstalk::driver {
namespace {

constexpr std::uint64_t most = std::uint64_t{1} << 28;  // a row takes 4 bytes

/// Takes words and numbers from the front of a line.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}
  std::string_view word() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size()));
    const std::string_view found = rest_.substr(0, rest_.find_first_of(" \t\r"));
    rest_.remove_prefix(found.size());
    return found;
  }
  /// nullopt: the next word is no number of this range.
  std::optional<std::uint64_t> number(std::uint64_t least, std::uint64_t greatest) {
    const auto value = whole_number<std::uint64_t>(word());
    return value && *value >= least && *value <= greatest ? value : std::nullopt;
  }

 private:
  std::string_view rest_;
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : static_cast<char>(c);
  });
  return result;
}

class MatrixReader {
 public:
  MatrixReader(std::istream& input, const std::string& name) : input_(input), name_(name) {}

  Result<SparseShape> read() {
    auto mirrored = read_header();
    if (!mirrored) {
      return tl::unexpected<Error>(mirrored.error());
    }
    if (!next_line() || !read_size()) {
      return refuse("it has no size: rows, columns and entries, at most 2^28 each");
    }
    shape_.row_starts.assign(shape_.size.rows + 1, 0);
    for (std::uint64_t i = 0; i < entries_; ++i) {
      if (!next_line()) {
        return refuse("it ends after " + std::to_string(i) + " of " + std::to_string(entries_) + " entries");
      }
      if (!read_entry(*mirrored)) {
        return refuse("there is no place in the matrix: '" + line_.substr(0, 40) + "'");
      }
    }
    if (next_line()) {
      return refuse("there are more than the " + std::to_string(entries_) + " entries that it promises");
    }
    for (std::size_t row = 0; row < shape_.size.rows; ++row) {
      shape_.row_starts[row + 1] += shape_.row_starts[row];
    }
    return std::move(shape_);
  }

 private:
  /// Skips comments and empty lines.
  bool next_line() {
    while (std::getline(input_, line_)) {
      ++number_;
      if (!line_.starts_with('%') && line_.find_first_not_of(" \t\r") != std::string::npos) {
        return true;
      }
    }
    return false;
  }

  /// True if the file holds one half of the matrix.
  Result<bool> read_header() {
    if (!std::getline(input_, line_)) {
      return refuse("it is empty");
    }
    ++number_;
    LineReader words(line_);
    if (lower(words.word()) != "%%matrixmarket" || lower(words.word()) != "matrix") {
      return refuse("it does not begin with '%%MatrixMarket matrix'");
    }
    if (lower(words.word()) != "coordinate") {
      return refuse("its matrix is dense; only the format 'coordinate' is read");
    }
    words.word();  // the kind of values
    const std::string symmetry = lower(words.word());
    if (symmetry != "general" && symmetry != "symmetric" && symmetry != "skew-symmetric" && symmetry != "hermitian") {
      return refuse("its symmetry is '" + symmetry.substr(0, 40) +
                    "'; known are general, symmetric, skew-symmetric and hermitian");
    }
    return symmetry != "general";
  }

  bool read_size() {
    LineReader numbers(line_);
    const auto rows = numbers.number(1, most);
    const auto columns = rows ? numbers.number(1, most) : std::nullopt;
    const auto entries = columns ? numbers.number(1, most) : std::nullopt;
    if (!entries) {
      return false;
    }
    shape_.size.rows = *rows;
    shape_.size.columns = *columns;
    entries_ = *entries;
    return true;
  }

  bool read_entry(bool mirrored) {
    LineReader numbers(line_);
    const auto row = numbers.number(1, shape_.size.rows);
    const auto column = row ? numbers.number(1, shape_.size.columns) : std::nullopt;
    if (!column || (mirrored && *column > shape_.size.rows)) {
      return false;
    }
    add(*row);
    if (mirrored && *row != *column) {
      add(*column);
    }
    return true;
  }
  void add(std::uint64_t row) {
    ++shape_.row_starts[row];
    ++shape_.size.nonzeros;
  }

  [[nodiscard]] tl::unexpected<Error> refuse(const std::string& why) const {
    return fail(ErrorCode::invalid_argument, name_ + ":" + std::to_string(number_) + ": " + why);
  }

  std::istream& input_;
  const std::string& name_;
  std::string line_;
  std::uint64_t number_ = 0, entries_ = 0;
  SparseShape shape_;
};

}  // namespace

Result<SparseShape> read_matrix_market(std::istream& input, const std::string& name) {
  return MatrixReader(input, name).read();
}

}  // namespace crosstalk::driver
