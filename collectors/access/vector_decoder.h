// SPDX-License-Identifier: Apache-2.0
// Recognises the vector instructions that lookaheads follow, and finds their operands.
#pragma once

#include <Zydis/DecoderTypes.h>

#include "collectors/access/decoded_instruction.h"

namespace crosstalk::in_target {

/// The place of a vector or mask register, Place::elsewhere for any other.
[[nodiscard]] Place vector_place(ZydisRegister r);

/// Sets operation, size, source_size, condition, places and immediate of `out`, whose memory operand, immediate and
/// written registers are set. False, and `out` is unchanged, for other instructions. `general`: the place of a general
/// register. Pure and signal-safe.
bool decode_vector(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands,
                   Place (*general)(ZydisRegister), DecodedInstruction& out);

}  // namespace crosstalk::in_target
