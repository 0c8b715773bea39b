// SPDX-License-Identifier: Apache-2.0
// Cached facts about code, by address.
#pragma once

#include <cstdint>

#include "collectors/access/checked_table.h"

namespace crosstalk::in_target {

/// The key covers the address and the bytes of code that the payload was made from, so that rewritten code misses.
class AccessCache {
  using Table = CheckedTable<3, 16384, 32>;

 public:
  using Payload = Table::Payload;
  using Candidate = Table::Candidate;

  [[nodiscard]] Candidate at(std::uint64_t address, std::uint64_t kind) const {
    return table_.at(place(address, kind));
  }
  void put(std::uint64_t address, std::uint64_t kind, std::uint64_t key, const Payload& payload) {
    table_.put(place(address, kind), key, payload);
  }

 private:
  /// Keeps kinds far apart, so that neighbouring addresses do not collide across kinds. Has one entry for every two
  /// bytes; the entries of 64 bytes of code are adjacent.
  static std::uint64_t place(std::uint64_t address, std::uint64_t kind) { return (address >> 1U) + (kind << 56U); }

  Table table_;
};

}  // namespace crosstalk::in_target
