// SPDX-License-Identifier: Apache-2.0
// Beginning and end of a thread's observation.
#pragma once

#include <cstdint>

#include "collectors/in_target/threads/thread_state.h"

namespace crosstalk::in_target {

/// Starts observing the calling thread: a slot, a ring, a clock. `stack_low`, `stack_high`, `thread_pointer`
/// are 0 when unknown. Null when it can not be observed (which is counted). Normal context or handler.
ThreadState* begin_thread(std::uint64_t stack_low, std::uint64_t stack_high, std::uint64_t thread_pointer);
/// Ends the observation of the calling thread.
void end_thread(ThreadState& self);
/// The calling thread steps aside for good, and with it the process: nobody reads the rings any more.
void stand_down(ThreadState& self);

/// Looks, at most a few times a second, for threads of this process that did not come by pthread_create
/// (raw clone), and gives each a timer that will make it known: adopt_found_thread(). Signal-safe.
void find_threads(std::uint64_t now_ns);
/// The calling thread was found by find_threads(): `timer` (a POSIX timer id, or -1) is its clock.
void adopt_found_thread(std::int32_t timer);

}  // namespace crosstalk::in_target
