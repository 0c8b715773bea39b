// SPDX-License-Identifier: Apache-2.0
// Signals of ours come onto the stack that a thread runs on, since threads keep their own alternate stacks where the
// library is brought in late. Programs that switch between stacks of their own (coroutines) may have a page for each,
// nearly full, and some use the stack pointer for something else. They would die of our first signal.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace crosstalk::injector {

/// Looks at where the threads of a process stand, several times at those that run. Empty: there is room on each stack
/// for a signal of ours. Else why not, of one of them. Fails where tracing is refused.
[[nodiscard]] Result<std::string> why_no_room_for_signals(pid_t pid);

/// The stack pointer in the text of /proc/PID/task/TID/syscall; nothing: the thread runs, or is gone.
[[nodiscard]] std::optional<std::uint64_t> stack_pointer_in(const std::string& text);

/// Whether the thread of that text executes another program: until that is done the pointer is the old program's.
[[nodiscard]] bool executes_program(const std::string& text);

/// Bytes that a signal takes: the kernel's frame on this machine, what lies below the stack pointer and is in use, and
/// our way to a stack of ours.
[[nodiscard]] std::uint64_t signal_bytes();

}  // namespace crosstalk::injector
