// SPDX-License-Identifier: Apache-2.0
// Copies of stacks, to be unwound by the report. Their number is rationed for the whole process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/registers.h"
#include "collectors/in_target/core/thread_state.h"

namespace crosstalk::in_target {

/// Takes a copy's worth of the process's allowance (`stacks a second`); false: none is left now. Signal-safe.
bool allow_stack_copy(std::uint64_t now_ns);

/// A slice of the calling thread's stack, if the process's allowance (`stacks a second`) permits one now.
/// `buffer` gets a StackSlice and its bytes; returns the bytes used, 0 for none. Signal-safe.
std::size_t copy_stack(const ThreadState& self, const Registers& registers, std::uint64_t now_ns, std::byte* buffer,
                       std::size_t capacity);

}  // namespace crosstalk::in_target
