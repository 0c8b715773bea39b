// SPDX-License-Identifier: Apache-2.0
// Does the program's own code make the system call that confines it (seccomp) by an instruction of its own? libc's
// functions for it are interposed, an instruction is not, and the next system call of ours would then be the
// program's death.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// Does machine code contain `mov $317, %eax` (seccomp), or `mov $157, %eax` (prctl) with `mov $22, %edi`
/// (PR_SET_SECCOMP), closely followed by `syscall`? Compilers move a constant so and in no other way.
bool has_sandbox_call(const std::uint8_t* code, std::size_t bytes);
/// Bytes that a call may take: what is looked at in pieces overlaps by so many.
inline constexpr std::size_t sandbox_call_bytes = 96;

/// Looks at the files of the program and of its libraries, libc's and ours left out, 32 MB of code at most: some 0.2 ms
/// a megabyte. Normal context.
bool makes_sandbox_calls();

}  // namespace crosstalk::in_target
