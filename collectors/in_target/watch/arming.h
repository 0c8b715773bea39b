// SPDX-License-Identifier: Apache-2.0
// Arms threads of this process for a watch, moves their watchpoints and disarms them. The threads of other processes
// are in remote_arming.h.
//
// Signal-safe. The slot's lock is held while threads are armed for a new watch and when it is over. A trap moves the
// watchpoints without it.
#pragma once

#include <cstdint>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/watch/watch_slot.h"
#include "collectors/watch_policy/sampled_access.h"

namespace crosstalk::in_target {

/// The thread of this process with that number; null: it is gone, or another process's.
[[nodiscard]] ThreadState* thread_of(std::uint32_t number);

/// Arms the thread whose sample has opened the watch.
void arm_sampled(WatchSlot& slot, ThreadState& self, const watch_policy::SampledAccess& access);
/// Arms the thread with number `partner` (0: there is none) and the other threads; if these are too many, some that are
/// drawn.
ArmedThreads arm_others(WatchSlot& slot, ThreadState& self, std::uint32_t partner);
/// Arms the words for which the calling thread is not armed.
void arm_unarmed(WatchSlot& slot, ThreadState& self);

/// Moves a thread's watchpoint on one word to another mode.
void set_mode(WatchSlot& slot, ThreadState& thread, std::uint32_t word, WatchMode mode);
/// The thread has lost the line: its next access is of interest again.
void restore_thread(WatchSlot& slot, ThreadState& thread);
/// Mends an event of the calling thread that has fired for no open watch, or, `open`, not for this one.
void correct_stray(WatchSlot& slot, ThreadState& self, std::uint32_t word, bool open);
/// Disarms the threads of this process. Skips those that another process has already armed for the slot's next watch.
void disarm_all(WatchSlot& slot);

}  // namespace crosstalk::in_target
