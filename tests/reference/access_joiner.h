// SPDX-License-Identifier: Apache-2.0
// Turns the pieces in which the emulator shows a thread's accesses into the executed accesses. Pure.
//
// A wide access comes as a row of pieces, lowest address first; an atomic read-modify-write as one store; another
// read-modify-write as a load and a store. If the instruction tells the width, one access an operand is counted.
#pragma once

#include <cstdint>
#include <optional>

#include "base/registers.h"
#include "tests/reference/instruction.h"

namespace crosstalk::reference {

struct Piece {
  std::uint32_t code = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  bool is_store = false;
};

struct JoinedAccess {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  AccessKind kind = AccessKind::none;
  bool operator==(const JoinedAccess&) const = default;
};

class AccessJoiner {
 public:
  /// Returns the access that begins with this piece; none if it belongs to one that was returned before.
  std::optional<JoinedAccess> take(const Piece& piece, const InstructionFacts& facts) {
    if (left_ >= piece.bytes && left_ > 0 && piece.code == code_ && piece.is_store == is_store_ &&
        piece.address == next_) {
      next_ += piece.bytes;
      left_ -= piece.bytes;
      return std::nullopt;
    }
    const std::uint32_t known = piece.is_store ? facts.store_bytes : facts.load_bytes;
    const std::uint32_t bytes = known > piece.bytes ? known : piece.bytes;
    const bool loaded_before = piece.code == code_ && !is_store_ && piece.address == begin_;
    AccessKind kind = piece.is_store ? AccessKind::store : AccessKind::load;
    if (piece.is_store && facts.read_modify_write && !loaded_before) {
      kind = AccessKind::load_store;
    }
    code_ = piece.code;
    is_store_ = piece.is_store;
    begin_ = piece.address;
    next_ = piece.address + piece.bytes;
    left_ = bytes - piece.bytes;
    return JoinedAccess{piece.address, bytes, kind};
  }

 private:
  std::uint64_t begin_ = 0, next_ = 0;
  std::uint32_t left_ = 0;  // bytes of the current access that are still to come
  std::uint32_t code_ = UINT32_MAX;
  bool is_store_ = false;
};

}  // namespace crosstalk::reference
