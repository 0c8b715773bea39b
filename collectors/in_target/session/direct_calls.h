// SPDX-License-Identifier: Apache-2.0
// Finds the system calls that the program's code makes by instructions of its own. libc's functions are interposed, an
// instruction is not. If the program confines the process (seccomp), or takes over its system calls (user dispatch),
// our next system call would kill it. If it sets handlers and masks of signals, as runtimes without libc do (Go's), it
// replaces our handlers and blocks our signals, and its own handlers get our signals.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

struct DirectCalls {
  bool confines = false;  // seccomp, or prctl's way to it or to user dispatch
  bool signals = false;   // rt_sigaction, rt_sigprocmask
};

/// Returns which of these calls machine code contains: `mov $NUMBER, %eax`, for prctl `mov $OPTION, %edi` too, closely
/// followed by `syscall`. Compilers move a constant only so.
DirectCalls direct_calls_in(const std::uint8_t* code, std::size_t bytes);
/// Bytes that a call may take: pieces that are searched overlap by so many.
inline constexpr std::size_t direct_call_bytes = 96;

/// Looks at the files of the program and of its libraries, libc's and ours left out, 32 MB of code at most: some 0.2 ms
/// a megabyte. `signals` is of the program's own file alone: libraries (sanitizers' runtimes) restore their changes.
/// Normal context.
DirectCalls find_direct_calls();

}  // namespace crosstalk::in_target
