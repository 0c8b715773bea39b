// SPDX-License-Identifier: Apache-2.0
// Processes that an observed one makes: nothing of the parent's is touched in the child, which is then observed anew,
// or left alone. Normal context.
#pragma once

namespace crosstalk::in_target {

/// Follows forks from now on. Once in a process.
void watch_forks();
/// Called before a thread is made. Detects a child that was made without libc's fork handlers (by _Fork, or the system
/// call), before its threads could be taken for its parent's.
void notice_fork();
/// Forgets all threads and the cost of observing. Their events and timers are gone already.
void forget_threads();

}  // namespace crosstalk::in_target
