// SPDX-License-Identifier: Apache-2.0
// Measures waits whose beginning and end an OpenMP runtime library reports. A thread that waits at a barrier or for
// tasks executes tasks meanwhile: that is work, and the wait goes on after it.
//
// A thread of a team learns only from the next parallel region that the barrier at the end of the last one has opened.
// The barrier opened when the last thread came or ended its last task. The thread that began the region knows this time
// when it comes back from the barrier, and adds up the waits of the others, which are surely in it then.
//
// All functions act on the calling thread, in normal context. They do nothing if waits are not measured.
#pragma once

#include <cstdint>

#include "profile/wait_table.h"

namespace crosstalk::in_target {

/// Begins a wait of the calling thread; `site`: the address that called. Does nothing within another wait.
void begin_told_wait(profile::WaitKind kind, const void* site);
/// Ends the wait. Does nothing if begin_told_wait() did nothing.
void end_told_wait();

/// Begins and ends a task: its end resumes the interrupted wait.
void begin_told_task();
void end_told_task();

/// A word for each parallel region, which the runtime library keeps: begins as told_region_of(), the same for all of
/// its threads.
using ToldRegion = std::uint64_t;
[[nodiscard]] ToldRegion told_region_of(const void* site);
/// True if the region was begun from `site`.
[[nodiscard]] bool is_begun_from(const ToldRegion& region, const void* site);
/// Begins a wait at the end of the region. `begun_it`: the calling thread began the region.
void begin_told_region_end(ToldRegion& region, bool begun_it);

}  // namespace crosstalk::in_target
