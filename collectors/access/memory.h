// SPDX-License-Identifier: Apache-2.0
// The memory that interpreted instructions see: the target's, under the stores interpreted so far.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/access/emulator.h"
#include "collectors/access/finder.h"

namespace crosstalk::in_target {

class InterpretedMemory {
 public:
  explicit InterpretedMemory(const CodeReader& reader) : reader_(reader) {}

  /// `width` 1..8 bytes; unknown if it cannot be read, or is hidden by a store of unknown value.
  Value load(std::uint64_t address, unsigned width);
  /// `width` 0: of unknown extent, after which nothing is known any more.
  void store(std::uint64_t address, unsigned width, Value value);
  /// A store whose place is not known.
  void store_anywhere() { lost_ = true; }

 private:
  static constexpr std::size_t capacity = 12;  // stores; frames spill more seldom than that in 64 instructions
  static constexpr std::size_t block_bytes = 64;

  bool fetch(std::uint64_t address, unsigned width, std::uint64_t& bits);
  bool fetch_block(std::uint64_t block);

  const CodeReader& reader_;
  std::uint64_t address_[capacity];
  std::uint64_t bits_[capacity];
  std::uint8_t width_[capacity];
  bool known_[capacity];
  std::uint8_t count_ = 0;
  bool lost_ = false;
  bool has_block_ = false;
  std::uint64_t block_ = 0;
  std::uint8_t bytes_[block_bytes];  // the target's at block_
};

}  // namespace crosstalk::in_target
