// SPDX-License-Identifier: Apache-2.0
// Recognises the vector instructions that lookaheads follow, and finds their operands.
#pragma once

#include <Zydis/DecoderTypes.h>

#include "collectors/access/decoded_instruction.h"

namespace crosstalk::in_target {

/// Sets operation, size, source_size, condition, places and immediate of `out`, whose memory operand, immediate and
/// written registers are set. False, and `out` is unchanged, for other instructions. Pure and signal-safe.
bool decode_vector(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands,
                   DecodedInstruction& out);

}  // namespace crosstalk::in_target
