// SPDX-License-Identifier: Apache-2.0
// Regions that the program marks (include/crosstalk/region.h): how long threads are in them and how often they begin
// them. Sums go to the thread's table in the arena (profile/region_table.h). A mark reads the vdso's clock, without a
// system call. Measures nothing if the program has no vdso.
#pragma once

#include <cstdint>

#include "collectors/in_target/core/thread_state.h"
#include "profile/wait_table.h"

namespace crosstalk::in_target {

/// Begins a region of the calling thread, in a function whose frame is at `frame`. Signal-safe; does nothing if the
/// thread is not observed.
void begin_region(const char* name, const void* frame);
/// Ends the region that the calling thread began last. Signal-safe.
void end_region();

/// Resets the thread's regions. Before its slot goes live.
void begin_regions(const ThreadState& self);
/// Ends all regions of the calling thread, which ends.
void end_regions(const ThreadState& self);
/// Called when the calling thread jumps to a function whose stack pointer is `stack_pointer`: ends regions that were
/// begun in functions that the jump leaves.
void end_regions_below(std::uint64_t stack_pointer);

/// The region that the thread is in, by its number in the thread's table; 0: none. Signal-safe.
[[nodiscard]] std::uint16_t region_of(const ThreadState& self);
/// Returns the innermost of the thread's current regions that it was in at `time_ns` (CLOCK_MONOTONIC); 0: none. Does
/// not know regions that have ended since. Signal-safe.
[[nodiscard]] std::uint16_t region_at(const ThreadState& self, std::uint64_t time_ns);
/// Adds the time that the thread of a slot (by index) waited for others to its current region.
void add_region_wait(std::uint32_t slot, profile::WaitClass what, std::uint64_t waited_ns);

}  // namespace crosstalk::in_target
