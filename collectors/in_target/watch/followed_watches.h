// SPDX-License-Identifier: Apache-2.0
// Joins the watches that other processes have opened, and leaves common watches that are over. Signal-safe.
#pragma once

#include <cstdint>
#include <span>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/watch/open_watches.h"

namespace crosstalk::in_target {

/// Leaves the watch of the slot if it is over, and joins the one that there is by now.
void follow_one(OpenWatches& watches, WatchSlot& slot, ThreadState& self, std::uint64_t now_ns);
/// Does so with the first `slots` of them, and arms `self` where it does not have the line.
void follow_all(OpenWatches& watches, std::uint32_t slots, ThreadState& self, std::uint64_t now_ns);
/// Leaves watch `id` of the slot if it is over.
void end_if_over(OpenWatches& watches, WatchSlot& slot, ThreadState& self, std::uint32_t id);

}  // namespace crosstalk::in_target
