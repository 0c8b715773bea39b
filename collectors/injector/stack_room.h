// SPDX-License-Identifier: Apache-2.0
// If the library is brought in late, threads keep their own alternate stacks, and our signals go to the stack that a
// thread runs on. Programs that switch between stacks of their own (coroutines) may have a page for each, nearly full,
// and some use the stack pointer for something else. They would die of our first signal.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace crosstalk::injector {

/// Looks at the stack pointers of a process's threads, several times if they run. Returns an empty text if each stack
/// has room for a signal of ours, else the reason for one that has none. Fails if tracing is refused.
[[nodiscard]] Result<std::string> why_no_room_for_signals(pid_t pid);

/// The stack pointer in the text of /proc/PID/task/TID/syscall; nothing: the thread runs, or is gone.
[[nodiscard]] std::optional<std::uint64_t> stack_pointer_in(const std::string& text);

/// True if the thread of that text executes another program: until the end of that the pointer is the old program's.
[[nodiscard]] bool executes_program(const std::string& text);

/// Returns the bytes that a signal takes: the kernel's frame on this machine, the bytes in use below the stack pointer,
/// and our way to a stack of ours.
[[nodiscard]] std::uint64_t signal_bytes();

}  // namespace crosstalk::injector
