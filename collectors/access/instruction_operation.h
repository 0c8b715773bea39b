// SPDX-License-Identifier: Apache-2.0
// Maps instructions to the operations of the access finder and of lookaheads, and registers to their places; vector
// instructions have operations of their own (vector_decoder.h).
#pragma once

#include <Zydis/DecoderTypes.h>

#include "collectors/access/decoded_instruction.h"

namespace crosstalk::in_target {

/// Returns Operation::other for an instruction that is not followed, Operation::stop for one that ends a lookahead.
/// Pure and signal-safe.
[[nodiscard]] Operation operation_of(const ZydisDecodedInstruction& instruction);

/// The place of a general register, Place::elsewhere for any other. All three are pure and signal-safe.
[[nodiscard]] Place place_of_register(ZydisRegister r);
/// The place of a vector or mask register, Place::elsewhere for any other.
[[nodiscard]] Place vector_place(ZydisRegister r);
[[nodiscard]] Place place_of_operand(const ZydisDecodedOperand& operand);

}  // namespace crosstalk::in_target
