// SPDX-License-Identifier: Apache-2.0
// Beginning and end of a thread's observation.
#pragma once

#include <cstdint>

#include "collectors/in_target/core/thread_state.h"

namespace crosstalk::in_target {

/// Starts observing the calling thread: a slot, a ring, a clock. `stack_low`, `stack_high`, `thread_pointer`
/// are 0 when unknown, and so is `start_routine`, the code address that the program has it begin at. Null when it can
/// not be observed (which is counted). Normal context or handler.
ThreadState* begin_thread(std::uint64_t stack_low, std::uint64_t stack_high, std::uint64_t thread_pointer,
                          std::uint64_t start_routine = 0);
/// Charges to the thread CPU time that it spent in calls of ours other than handlers.
void charge_own_calls(ThreadState& self, std::uint64_t took_ns);
/// Gives new threads other random choices than in the process that this one was forked from. Normal context.
void forget_threads_begun();
/// Ends the observation of the calling thread.
void end_thread(ThreadState& self);
/// Ends the observation of thread `tid`, which ended unnoticed by the system call itself.
void end_lost_thread(ThreadState& thread, std::int32_t tid);

}  // namespace crosstalk::in_target
