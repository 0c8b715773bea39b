// SPDX-License-Identifier: Apache-2.0
// Tells a forked child from its parent without a system call, however it was made.
#pragma once

namespace crosstalk::in_target {

/// Once in a process, and again in a child that has been noticed.
void make_fork_mark();
void set_fork_mark();
/// Is the calling process a child that was made without libc's handlers of forks, and nobody has noticed yet? Any
/// context. Not one that shares its parent's memory.
[[nodiscard]] bool is_unnoticed_fork();

}  // namespace crosstalk::in_target
