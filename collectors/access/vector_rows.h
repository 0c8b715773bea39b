// SPDX-License-Identifier: Apache-2.0
// The table of the vector instructions that lookaheads follow.
#pragma once

#include <Zydis/DecoderTypes.h>

#include <cstdint>

#include "collectors/access/vector_operation.h"

namespace crosstalk::in_target {

/// How an instruction's operands become destination, left and right.
enum class VectorShape : std::uint8_t {
  binary,        // two operands: the destination is the left one, too
  unary,         // the last one is the right one
  shift,         // binary, or by an immediate, which then is the right one
  scalar,        // binary, of the lowest element alone
  scalar_unary,  // the same; the left operand only gives the rest
  compares,      // no destination
  moves_low,     // movss, movsd: loads, stores, or merges
};

/// An instruction. `element`: bytes that a mask register's bit stands for, and that a comparison or a conversion
/// produces. `extra`: for conversions bytes of the source's element, for broadcasts and lanes bytes of the part, else
/// unused.
struct VectorRow {
  ZydisMnemonic mnemonic;
  VectorOperation operation;
  std::uint8_t element;
  VectorShape shape;
  std::uint8_t extra = 0;
};

/// Returns the row of an instruction; null: it has none. Pure and signal-safe.
[[nodiscard]] const VectorRow* vector_row_of(ZydisMnemonic mnemonic);

}  // namespace crosstalk::in_target
