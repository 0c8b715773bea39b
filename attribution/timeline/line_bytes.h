// SPDX-License-Identifier: Apache-2.0
// A set of bytes of one cache line. Accesses to a line are compared by their bytes, so that true sharing (a byte in
// common) and false sharing (none) are one bitwise operation apart.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace crosstalk::attribution {

class LineBytes {
 public:
  static constexpr std::int64_t line_bytes = 64;

  constexpr LineBytes() = default;

  /// The bytes [offset, offset + length) of a line, clipped to the line; an access may straddle its ends.
  [[nodiscard]] static constexpr LineBytes range(std::int64_t offset, std::uint64_t length) {
    constexpr std::int64_t longest = 4096;  // no instruction with a known width touches more
    if (offset >= line_bytes || offset <= -longest || length == 0) {
      return {};
    }
    const std::int64_t end = offset + static_cast<std::int64_t>(std::min<std::uint64_t>(length, longest));
    const std::int64_t first = std::max<std::int64_t>(offset, 0);
    const std::int64_t last = std::min(end, line_bytes);
    if (last <= first) {
      return {};
    }
    const std::uint64_t ones = last - first == line_bytes ? ~0ULL : (1ULL << (last - first)) - 1;
    return LineBytes(ones << first);
  }

  [[nodiscard]] constexpr bool empty() const { return mask_ == 0; }
  [[nodiscard]] constexpr bool overlaps(LineBytes other) const { return (mask_ & other.mask_) != 0; }
  /// Offset of the lowest byte; 0 if empty.
  [[nodiscard]] constexpr std::uint32_t first() const {
    return mask_ == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(mask_));
  }
  [[nodiscard]] constexpr std::uint32_t count() const { return static_cast<std::uint32_t>(std::popcount(mask_)); }
  constexpr LineBytes& operator|=(LineBytes other) {
    mask_ |= other.mask_;
    return *this;
  }
  constexpr bool operator==(const LineBytes&) const = default;

 private:
  constexpr explicit LineBytes(std::uint64_t mask) : mask_(mask) {}
  std::uint64_t mask_ = 0;
};

}  // namespace crosstalk::attribution
