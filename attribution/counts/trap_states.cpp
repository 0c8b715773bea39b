// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/trap_states.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace crosstalk::attribution {

std::uint32_t TrapStates::add(const profile::TrapRow& trap) {
  const std::uint32_t row = size();
  Words words = first_;  // unknown words are never read: the first row's take no room
  std::copy_n(trap.registers.value.begin(), state_registers, words.begin());
  if (trap.frame) {
    std::copy(trap.frame->begin(), trap.frame->end(), words.begin() + state_registers);
  }
  if (row == 0) {
    first_ = words;
  }
  for (std::uint64_t left = changed(words) | in_columns_; left != 0; left &= left - 1) {
    const auto index = static_cast<std::size_t>(std::countr_zero(left));
    add(index, words[index]);
  }
  times_.push_back(trap.time_ns);
  has_frame_.push_back(trap.frame.has_value());
  return row;
}

/// A bit for each word that differs from the first row.
std::uint64_t TrapStates::changed(const Words& words) const {
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < state_words; ++i) {
    changed |= std::uint64_t{words[i] != first_[i]} << i;
  }
  return changed;
}

/// Adds the value to the word's column, which it makes if necessary.
void TrapStates::add(std::size_t index, std::uint64_t value) {
  if (is_constant(index)) {
    column_of_[index] = static_cast<std::uint8_t>(columns_.size());
    in_columns_ |= std::uint64_t{1} << index;
    Column& fresh = columns_.emplace_back();
    for (std::uint32_t row = 0; row < size(); ++row) {
      fresh.near.push_back(0);
    }
  }
  Column& column = columns_[column_of_[index]];
  const auto difference = static_cast<std::int64_t>(value - first_[index]);
  const bool is_near =
      difference >= std::numeric_limits<std::int32_t>::min() && difference <= std::numeric_limits<std::int32_t>::max();
  if (column.far.empty() && is_near) {
    column.near.push_back(static_cast<std::int32_t>(difference));
    return;
  }
  if (column.far.empty()) {
    for (std::size_t row = 0; row < column.near.size(); ++row) {
      column.far.push_back(first_[index] + static_cast<std::uint64_t>(std::int64_t{column.near[row]}));
    }
    column.near = {};
  }
  column.far.push_back(value);
}

}  // namespace crosstalk::attribution
