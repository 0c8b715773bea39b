// SPDX-License-Identifier: Apache-2.0
// Rows that describe ranges of processes' memory, searched by address and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "attribution/timeline/address_space.h"
#include "base/interval_index.h"

namespace crosstalk::attribution {

/// `Row` has `process`, `begin`, `bytes` and the time `time_ns` when it was first seen. The rows must outlive this.
/// Memory is reused: a search takes the last row seen before a time, else the first one after.
template <class Row>
class RowsByAddress {
 public:
  explicit RowsByAddress(std::span<const Row> rows) {
    for (const Row& row : rows) {
      if (row.begin + row.bytes > row.begin) {
        spaces_[row.process].add(row.begin, row.begin + row.bytes, &row);
      }
    }
    for (auto& [process, space] : spaces_) {
      space.build();
    }
  }

  /// `alone`, if given, tells whether the row is the only one ever seen at the address.
  [[nodiscard]] const Row* find(Moment moment, std::uint64_t address, bool* alone = nullptr) const {
    const auto space = spaces_.find(moment.process);
    if (space == spaces_.end()) {
      return nullptr;
    }
    const Row* before = nullptr;
    const Row* after = nullptr;
    std::size_t found = 0;
    space->second.covering(address, [&](const Row* row, std::uint64_t, std::uint64_t) {
      ++found;
      if (row->time_ns <= moment.time_ns) {
        before = before == nullptr || row->time_ns > before->time_ns ? row : before;
      } else {
        after = after == nullptr || row->time_ns < after->time_ns ? row : after;
      }
    });
    if (alone != nullptr) {
      *alone = found == 1;
    }
    return before != nullptr ? before : after;
  }

 private:
  std::map<ProcessId, IntervalIndex<const Row*>> spaces_;
};

}  // namespace crosstalk::attribution
