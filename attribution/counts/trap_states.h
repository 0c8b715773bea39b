// SPDX-License-Identifier: Apache-2.0
// Registers and lowest stack words of one thread at its traps at one instruction, stored by column.
//
// A trap's state has 33 words of 8 bytes, and a program that mainly communicates has millions of traps. At one
// instruction most words are constant and most others stay near each other: a column is one value, or 4 bytes a trap,
// or 8.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attribution/counts/chunked.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// Registers but rip, then the lowest words of the stack: a counter may be in any of them.
inline constexpr std::size_t state_registers = register_count - 1;
inline constexpr std::size_t state_words = state_registers + profile::trap_frame_words;

class TrapStates {
 public:
  TrapStates() { column_of_.fill(constant); }
  /// Returns the index of the new row.
  std::uint32_t add(const profile::TrapRow& trap);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(times_.size()); }
  [[nodiscard]] std::uint64_t time_ns(std::uint32_t row) const { return times_[row]; }
  /// The number of known words of a row: words with lower indices are known.
  [[nodiscard]] std::size_t words(std::uint32_t row) const { return has_frame_[row] ? state_words : state_registers; }
  /// A known word of a row.
  [[nodiscard]] std::uint64_t word(std::uint32_t row, std::size_t index) const {
    if (is_constant(index)) {
      return first_[index];
    }
    const Column& column = columns_[column_of_[index]];
    return column.far.empty() ? first_[index] + static_cast<std::uint64_t>(std::int64_t{column.near[row]})
                              : column.far[row];
  }
  [[nodiscard]] bool is_constant(std::size_t index) const { return column_of_[index] == constant; }

 private:
  static constexpr std::uint8_t constant = UINT8_MAX;
  struct Column {                // one of them is in use
    Chunked<std::int32_t> near;  // differences from the first value
    Chunked<std::uint64_t> far;  // values
  };
  using Words = std::array<std::uint64_t, state_words>;
  [[nodiscard]] std::uint64_t changed(const Words& words) const;
  void add(std::size_t index, std::uint64_t value);

  Chunked<std::uint64_t> times_;
  std::vector<bool> has_frame_;
  Words first_{};  // values of the first row
  std::array<std::uint8_t, state_words> column_of_{};
  std::uint64_t in_columns_ = 0;  // words that have a column, a bit each
  static_assert(state_words <= 64);
  std::vector<Column> columns_;
};

}  // namespace crosstalk::attribution
