// SPDX-License-Identifier: Apache-2.0
// Maps instructions to the operations of the access finder and of lookaheads; vector instructions have their own
// (vector_decoder.h).
#pragma once

#include <Zydis/DecoderTypes.h>

#include "collectors/access/decoded_instruction.h"

namespace crosstalk::in_target {

/// True if the instruction computes an address, or is a hint, whatever its operands are. Pure and signal-safe.
[[nodiscard]] bool touches_no_memory(const ZydisDecodedInstruction& instruction);

/// Returns Operation::other for an instruction that is not followed, Operation::stop for one that ends a lookahead.
/// Pure and signal-safe.
[[nodiscard]] Operation operation_of(const ZydisDecodedInstruction& instruction);

}  // namespace crosstalk::in_target
