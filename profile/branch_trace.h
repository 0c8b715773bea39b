// SPDX-License-Identifier: Apache-2.0
// The way that a lookahead took through code, in few bytes: where it left the straight line, and where to. Written
// inside the observed process, in a signal handler; read back by unpack_branch_trace().
//
// For each taken transfer of control: the distance from where the straight line began (the lookahead's begin, or where
// the transfer before has led to) to the transferring instruction, then that from this instruction to its target,
// zigzag (0, -1, 1, -2, ...). At last the distance from where the last straight line began to the first instruction
// that was not followed. All numbers 7 bits a byte, lowest first, bit 7 set in all but the last (LEB128).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace crosstalk::profile {

/// The most instructions that a lookahead may have.
inline constexpr std::uint32_t max_lookahead_instructions = 1U << 16U;
/// The longest straight line, bytes: no instruction is longer than 15.
inline constexpr std::uint64_t max_straight_bytes = std::uint64_t{15} * max_lookahead_instructions;
/// The most that a way may take, bytes.
inline constexpr std::size_t max_branch_trace_bytes = 4096;

/// Puts a way together in a fixed buffer. Signal-safe.
class BranchTraceWriter {
 public:
  BranchTraceWriter(std::uint8_t* bytes, std::size_t capacity) : bytes_(bytes), capacity_(capacity) {}

  /// False: there may not be room for another transfer and the end; nothing was written.
  bool turn(std::uint64_t straight, std::uint64_t jump) {
    if (capacity_ - size_ < std::size_t{3} * longest_number) {
      return false;
    }
    put(straight);
    put((jump << 1U) ^ ((jump >> 63U) != 0 ? ~std::uint64_t{0} : 0));
    return true;
  }
  /// Once, at last. There is room for it where turn() said so, and in an empty buffer of `longest_number` bytes.
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

/// The straight lines of a way that begins at `begin`, in order; nothing when `packed` is not what BranchTraceWriter
/// makes.
[[nodiscard]] std::optional<std::vector<Straight>> unpack_branch_trace(std::span<const std::uint8_t> packed,
                                                                       std::uint64_t begin);

}  // namespace crosstalk::profile
