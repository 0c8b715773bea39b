// SPDX-License-Identifier: Apache-2.0
// Accesses that are rarely what anybody looks for: the top of a thread's own stack, fixed jump slots.
#pragma once

#include <cstdint>

#include "collectors/access/decoded_instruction.h"
#include "collectors/access/emulator.h"
#include "collectors/access/route.h"

namespace crosstalk::in_target {

/// True for a load or a store in the red zone, or where a call has just left its arguments. Further up there may be
/// what a function shares with other threads, as the variables of a parallel region; and what is updated in one
/// instruction may be shared anywhere.
inline bool is_at_stack_top(AccessKind kind, std::uint64_t address, std::uint64_t stack_pointer) {
  constexpr std::uint64_t red_zone = 128;
  constexpr std::uint64_t arguments = 64;
  return kind != AccessKind::load_store && address - (stack_pointer - red_zone) < red_zone + arguments;
}

/// True if the memory operand is relative to rsp, or to an rbp that serves as a frame pointer: it lies in the red zone
/// below rsp, in deeper calls' frames, or in a megabyte of frames above.
inline bool is_spill(const DecodedInstruction& instruction, Value address, std::uint64_t stack_pointer) {
  constexpr std::uint64_t below = 64 * 1024;
  constexpr std::uint64_t above = 1024 * 1024;
  if (instruction.has(trait_fs)) {
    return false;
  }
  if (instruction.base == static_cast<std::uint8_t>(Register::rsp)) {
    return true;
  }
  return instruction.base == static_cast<std::uint8_t>(Register::rbp) && address.known &&
         address.bits - (stack_pointer - below) < below + above;
}

/// True if the search for an access passes by this one: a spill, or at the stack's top. `rsp`: before the instruction,
/// else `stack_pointer`. Notes in `route` if the answer depends on the address.
inline bool is_passed_by(const DecodedInstruction& instruction, Value address, Value rsp, std::uint64_t stack_pointer,
                         Route& route) {
  const std::uint64_t stack = rsp.known ? rsp.bits : stack_pointer;
  if (is_spill(instruction, address, stack)) {
    return true;
  }
  if (!address.known || !is_at_stack_top(instruction.kind(), address.bits, stack)) {
    return false;
  }
  route.depends();
  return true;
}

/// A jump or call through a word at a fixed place, as a linkage table has them: written once, then only read.
inline bool is_fixed_jump(const DecodedInstruction& instruction) {
  return (instruction.operation == Operation::jump || instruction.operation == Operation::call) &&
         instruction.base == rip_register && instruction.index == no_register;
}

}  // namespace crosstalk::in_target
