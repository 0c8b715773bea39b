// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk {

/// Hashes fields that the caller has packed into one number: neighbouring values get distant hashes (Fibonacci hashing,
/// Knuth, The Art of Computer Programming 3, 6.4).
constexpr std::size_t spread(std::uint64_t fields) {
  const std::uint64_t product = fields * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::size_t>(product ^ (product >> 32U));
}

}  // namespace crosstalk
