// SPDX-License-Identifier: Apache-2.0
// Packs the path that a lookahead took through code: the place and target of each taken transfer of control. Written
// inside the observed process, in a signal handler; read back by unpack_branch_trace().
//
// For each taken transfer of control: the distance from the start of the straight line (the lookahead's begin, or the
// target of the previous transfer) to the transferring instruction, then that from this instruction to its target,
// zigzag (0, -1, 1, -2, ...). Last comes the distance from the start of the last straight line to the first instruction
// that was not followed. All numbers take 7 bits a byte, lowest first, with bit 7 set in all but the last (LEB128).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace crosstalk::profile {

/// The most instructions of a lookahead.
inline constexpr std::uint32_t max_lookahead_instructions = 1U << 16U;
/// The longest straight line, bytes: no instruction is longer than 15.
inline constexpr std::uint64_t max_straight_bytes = std::uint64_t{15} * max_lookahead_instructions;
/// The most bytes of a packed path.
inline constexpr std::size_t max_branch_trace_bytes = 4096;

/// Packs a path into a fixed buffer. Signal-safe.
class BranchTraceWriter {
 public:
  BranchTraceWriter(std::uint8_t* bytes, std::size_t capacity) : bytes_(bytes), capacity_(capacity) {}

  /// False, with nothing written, if there may be no room for another transfer and the end.
  bool turn(std::uint64_t straight, std::uint64_t jump) {
    if (capacity_ - size_ < std::size_t{3} * longest_number) {
      return false;
    }
    put(straight);
    put((jump << 1U) ^ ((jump >> 63U) != 0 ? ~std::uint64_t{0} : 0));
    return true;
  }
  /// Ends the path; call it once. Room for it is certain after a successful turn(), or in an empty buffer of
  /// `longest_number` bytes.
  void end(std::uint64_t straight) { put(straight); }
  [[nodiscard]] std::size_t size() const { return size_; }

  static constexpr std::size_t longest_number = 10;

 private:
  void put(std::uint64_t number) {
    for (; number > 0x7f; number >>= 7U) {
      bytes_[size_++] = static_cast<std::uint8_t>(number | 0x80U);
    }
    bytes_[size_++] = static_cast<std::uint8_t>(number);
  }

  std::uint8_t* bytes_;
  std::size_t capacity_;
  std::size_t size_ = 0;
};

/// Instructions on a straight line: the first is at `begin`, the last one at or before `last`.
struct Straight {
  std::uint64_t begin = 0;
  std::uint64_t last = 0;  // the transferring instruction; of the last straight line, the first one not followed
};

/// The straight lines of a path that begins at `begin`, in order; nullopt if `packed` is not BranchTraceWriter's
/// output.
[[nodiscard]] std::optional<std::vector<Straight>> unpack_branch_trace(std::span<const std::uint8_t> packed,
                                                                       std::uint64_t begin);

}  // namespace crosstalk::profile
