// SPDX-License-Identifier: Apache-2.0
// Tells a forked child from its parent without a system call, however it was made.
#pragma once

namespace crosstalk::in_target {

/// Once in a process, and again in a child that has been noticed.
void make_fork_mark();
void set_fork_mark();
/// True if the calling process is a child that was made without libc's fork handlers, and this was not noticed yet. Any
/// context. False for a child that shares its parent's memory.
[[nodiscard]] bool is_unnoticed_fork();

}  // namespace crosstalk::in_target
