// SPDX-License-Identifier: Apache-2.0
// Arms threads of other processes that share a watched line's memory, by their slots in the arena (remote_events.h).
// Signal-safe. Locks as arming.h has it.
#pragma once

#include <cstdint>
#include <span>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/watch/watch_slot.h"

namespace crosstalk::in_target {

/// Arms the thread with number `partner`, if there is one, and others, drawn among all that are there. `self` draws.
ArmedThreads arm_elsewhere(WatchSlot& slot, ThreadState& self, std::uint32_t partner);
/// Thread number `runner` of another process has lost the line: its next access is of interest again.
void restore_elsewhere(WatchSlot& slot, std::uint32_t runner);
/// Disarms the threads that are armed for watch `id`: their processes need not notice that it is over.
void disarm_elsewhere(WatchSlot& slot, std::uint32_t id);
/// Closes our events on threads of other processes. They are opened again when they are needed, with other descriptor
/// numbers. Normal context.
void renew_events_elsewhere(std::span<WatchSlot> slots);

}  // namespace crosstalk::in_target
