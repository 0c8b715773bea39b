// SPDX-License-Identifier: Apache-2.0
// The target's code: a window of bytes around the place of interest, instructions in it, and their lengths.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/access/code_cache.h"
#include "collectors/access/code_reader.h"
#include "collectors/access/decoded_instruction.h"

namespace crosstalk::in_target {

inline constexpr std::size_t longest_instruction = 15;

/// A copy of up to 192 bytes of code. Pages are read apart, and those next to the page of interest only when need
/// be: each may cost a system call, or may not be readable.
class CodeWindow {
 public:
  static constexpr std::size_t before = 64;
  static constexpr std::size_t after = 128;

  CodeWindow(const CodeReader& reader, AccessCache& cache) : reader_(reader), cache_(cache) {}

  /// Moves the window to [center - before, center + after), within the page of `center`.
  void center(std::uint64_t center);
  /// Adds what of the window lies on the pages next to it.
  void extend();
  /// Moves the window, if need be, to contain an instruction at `address`. False: it cannot be read.
  bool look_at(std::uint64_t address);
  [[nodiscard]] bool contains(std::uint64_t address) const { return address - begin_ < end_ - begin_; }
  /// Bytes in the window before and from `address`, which it contains.
  [[nodiscard]] std::size_t bytes_before(std::uint64_t address) const { return address - begin_; }
  [[nodiscard]] std::size_t bytes_after(std::uint64_t address) const { return end_ - address; }
  [[nodiscard]] const std::uint8_t* data(std::uint64_t address) const { return bytes_ + (address - low_); }

  /// The instruction at `address`, from the cache if its bytes are still the same. Moves the window if need be.
  bool decode(std::uint64_t address, DecodedInstruction& out);
  AccessCache& cache() { return cache_; }

 private:
  const CodeReader& reader_;
  AccessCache& cache_;
  std::uint64_t low_ = 0;  // [low_, high_): the window, where bytes_ begins
  std::uint64_t high_ = 0;
  std::uint64_t begin_ = 0;  // [begin_, end_): the part that has been read
  std::uint64_t end_ = 0;
  bool extended_ = true;
  std::uint8_t bytes_[before + after + 16];  // 16: words are loaded from any byte
};

/// The properties of an instruction that are needed to find its neighbours.
struct Outline {
  std::uint8_t length = 0;   ///< 0: none, or none that ordinary user code would contain
  bool branches = false;     ///< a direct jump, conditional or not, by `offset` from its end
  bool distinctive = false;  ///< bytes that hardly ever are anything else
  bool doubtful = false;     ///< seldom meant: an operand's last byte, 0, taken for `add %r, m`
  std::int32_t offset = 0;
};

/// Outline of the instruction at the front of `bytes` bytes of 64-bit code, ten times as fast as a decoder.
Outline outline_instruction(const std::uint8_t* code, std::size_t bytes);

}  // namespace crosstalk::in_target
