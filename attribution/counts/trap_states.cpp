// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/trap_states.h"

#include <limits>

namespace crosstalk::attribution {

std::uint32_t TrapStates::add(const profile::TrapRow& trap) {
  const std::uint32_t row = size();
  for (std::size_t i = 0; i < state_registers; ++i) {
    add(i, trap.registers.value[i]);
  }
  for (std::size_t i = state_registers; i < state_words; ++i) {
    // What is not known is never read: the first value takes no room.
    add(i, trap.frame ? (*trap.frame)[i - state_registers] : first_[i]);
  }
  times_.push_back(trap.time_ns);
  has_frame_.push_back(trap.frame.has_value());
  return row;
}

void TrapStates::add(std::size_t index, std::uint64_t value) {
  const std::uint32_t rows = size();
  if (rows == 0) {
    first_[index] = value;
    return;
  }
  const auto difference = static_cast<std::int64_t>(value - first_[index]);
  if (column_of_[index] == constant) {
    if (difference == 0) {
      return;
    }
    column_of_[index] = static_cast<std::uint8_t>(columns_.size());
    columns_.emplace_back().near.assign(rows, 0);
  }
  Column& column = columns_[column_of_[index]];
  const bool is_near =
      difference >= std::numeric_limits<std::int32_t>::min() && difference <= std::numeric_limits<std::int32_t>::max();
  if (column.far.empty() && is_near) {
    column.near.push_back(static_cast<std::int32_t>(difference));
    return;
  }
  if (column.far.empty()) {
    column.far.reserve(column.near.capacity() + 1);
    for (const std::int32_t near : column.near) {
      column.far.push_back(first_[index] + static_cast<std::uint64_t>(std::int64_t{near}));
    }
    std::vector<std::int32_t>().swap(column.near);
  }
  column.far.push_back(value);
}

void TrapStates::shrink() {
  times_.shrink_to_fit();
  for (Column& column : columns_) {
    column.near.shrink_to_fit();
    column.far.shrink_to_fit();
  }
}

}  // namespace crosstalk::attribution
