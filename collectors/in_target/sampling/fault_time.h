// SPDX-License-Identifier: Apache-2.0
// Time that the kernel took for page faults. A clock that runs out there has its signal handled on the way back, where
// the registers are those of the user's instruction, as if the clock had run out in it. The thread's own accounts tell.
// Signal-safe.
#pragma once

#include "collectors/in_target/threads/thread_state.h"
#include "collectors/observation.h"

namespace crosstalk::in_target {

/// What the calling thread has used so far.
[[nodiscard]] ThreadUsage usage_of_thread();
/// A thread begins, having used this.
void begin_fault_time(ThreadState& self, const ThreadUsage& used);
/// What it did in its last `cpu_ns`, up to where it has used this, decides whether it is asked at each sample.
void review_fault_time(ThreadState& self, const ThreadUsage& used, std::uint64_t faults, std::uint64_t cpu_ns);
/// Does the observation stand for time in page faults? It does where there were many, and the kernel's accounts of the
/// thread say that its clock ran out in the kernel.
[[nodiscard]] bool is_fault_time(ThreadState& self, const collectors::Observation& seen);

}  // namespace crosstalk::in_target
