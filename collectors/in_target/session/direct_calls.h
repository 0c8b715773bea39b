// SPDX-License-Identifier: Apache-2.0
// What does the program's own code ask of the kernel by instructions of its own? libc's functions are interposed, an
// instruction is not. Where it confines the process (seccomp), or has its system calls handed to it (user dispatch),
// the next system call of ours would be the program's death. Where it sets handlers and masks of signals, as runtimes
// without libc do (Go's), it replaces our handlers and blocks our signals, and ours come to handlers of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

struct DirectCalls {
  bool confines = false;  // seccomp, or prctl's way to it or to user dispatch
  bool signals = false;   // rt_sigaction, rt_sigprocmask
};

/// Which of these calls does machine code contain? `mov $NUMBER, %eax`, for prctl `mov $OPTION, %edi` too, closely
/// followed by `syscall`: compilers move a constant so and in no other way.
DirectCalls direct_calls_in(const std::uint8_t* code, std::size_t bytes);
/// Bytes that a call may take: what is looked at in pieces overlaps by so many.
inline constexpr std::size_t direct_call_bytes = 96;

/// Looks at the files of the program and of its libraries, libc's and ours left out, 32 MB of code at most: some 0.2 ms
/// a megabyte. `signals` is of the program's own file alone: libraries (sanitizers' runtimes) put back what they
/// change. Normal context.
DirectCalls find_direct_calls();

}  // namespace crosstalk::in_target
