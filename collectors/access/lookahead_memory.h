// SPDX-License-Identifier: Apache-2.0
// The target's memory as changed by a lookahead's own stores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/access/code_reader.h"
#include "collectors/access/emulator.h"

namespace crosstalk::in_target {

/// Large: static storage, one lookahead at a time. All-zero at first.
class LookaheadMemory {
 public:
  /// Begins a lookahead: forgets all stores. `reader` must outlive it.
  void begin(const CodeReader& reader);
  void begin(const CodeReader&& reader) = delete;
  /// `width` 1..8 bytes. Unknown if it cannot be read, or holds an unknown value.
  Value load(std::uint64_t address, unsigned width);
  /// `width` 1..64 bytes into `out`. Returns which of them are known, a bit each.
  std::uint64_t load_bytes(std::uint64_t address, unsigned width, std::uint8_t* out);
  /// `width` 1..64 bytes; of more than 8 only that they are no longer known.
  void store(std::uint64_t address, unsigned width, Value value);
  /// `width` 1..64 bytes: `known` tells which are known, and `written` which are stored.
  void store_bytes(std::uint64_t address, unsigned width, const std::uint8_t* bytes, std::uint64_t known,
                   std::uint64_t written);
  /// A store whose place is not known.
  void store_anywhere() { full_ = true; }
  /// True if no more can be remembered: the last load or store may be wrong.
  [[nodiscard]] bool full() const { return full_; }

  static constexpr std::size_t blocks = 128;  // of the processor's lines

 private:
  static constexpr std::size_t block_bytes = 64;
  struct Block {
    std::uint64_t number;  // address / block_bytes
    std::uint64_t known;   // a bit for each byte
    std::uint32_t run;     // 0: never used
    std::uint8_t bytes[block_bytes];
  };
  Block* block_of(std::uint64_t number);

  const CodeReader* reader_;
  std::uint32_t run_;  // number of the lookahead
  bool full_;
  Block block_[blocks];
};

}  // namespace crosstalk::in_target
