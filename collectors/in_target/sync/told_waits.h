// SPDX-License-Identifier: Apache-2.0
// Waits that an OpenMP runtime library tells of, where they begin and where they end. A thread that waits at a barrier
// or for tasks executes tasks meanwhile: that is work, and the wait goes on behind it.
//
// A thread of a team is told only by the next parallel region that the barrier at the end of the last one has opened.
// It opened when the last thread came or ended its last task; the thread that began the region knows when it comes
// back from the barrier, and adds up the waits of the others, who are surely in it then.
//
// All is the calling thread's; normal context. Nothing is done where waits are not measured.
#pragma once

#include <cstdint>

#include "profile/wait_table.h"

namespace crosstalk::in_target {

/// The calling thread begins to wait; `site`: where it was called from. Nothing within another wait.
void begin_told_wait(profile::WaitKind kind, const void* site);
/// It has what it waited for. Nothing where begin_told_wait() did nothing.
void end_told_wait();

/// It begins a task, and comes back from it to what it did before.
void begin_told_task();
void end_told_task();

/// A word for each parallel region, which the runtime library keeps: begins as told_region_of(), the same for all of
/// its threads.
using ToldRegion = std::uint64_t;
[[nodiscard]] ToldRegion told_region_of(const void* site);
/// Whether the region was begun from `site`.
[[nodiscard]] bool is_begun_from(const ToldRegion& region, const void* site);
/// The calling thread waits at the end of the region. `begun_it`: it is the one that the region began in.
void begin_told_region_end(ToldRegion& region, bool begun_it);

}  // namespace crosstalk::in_target
