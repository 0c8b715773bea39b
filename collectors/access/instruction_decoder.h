// SPDX-License-Identifier: Apache-2.0
// From bytes of code to the description of an instruction that the access finder and lookaheads work with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/access/decoded_instruction.h"

namespace crosstalk::in_target {

/// Decodes the instruction at the front of `bytes` bytes of 64-bit code. False: it is none, or cut short.
/// Pure and signal-safe. Uses about a kilobyte of stack.
bool decode_instruction(const std::uint8_t* code, std::size_t bytes, DecodedInstruction& out);

}  // namespace crosstalk::in_target
