// SPDX-License-Identifier: Apache-2.0
// The steps of attaching a process to an arena, of which there are two ways: at the program's start (attach.cpp) and in
// a process that runs already (injected.cpp). Normal context.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

/// Maps the arena of that name and takes over its settings. False: there is none, its session is over, or it has no
/// room.
bool map_arena(const char* name);
/// Why the program is better left alone, the recorder being process `recorder`; null: it can be observed.
const char* why_not_observed(std::int32_t recorder);
/// Makes the vdso read the time, if possible.
void find_fast_clock();
/// To the calling thread's ring.
void write_process_start(bool after_fork);
/// Follows forks from now on. Once in a process.
void watch_forks();
/// Called before a thread is made. Detects a child that was made without libc's fork handlers (by _Fork, or the system
/// call), before its threads could be taken for its parent's.
void notice_fork();
/// Forgets all threads and the cost of observing. Their events and timers are gone already.
void forget_threads();

}  // namespace crosstalk::in_target
