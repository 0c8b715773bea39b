// SPDX-License-Identifier: Apache-2.0
// Finds time that the kernel took for page faults. If a clock runs out there, its signal is handled on the way back,
// with the registers of the user's instruction, as if the clock had run out in it. The thread's own accounts tell the
// difference. Signal-safe.
#pragma once

#include "collectors/in_target/core/thread_state.h"
#include "collectors/observation.h"

namespace crosstalk::in_target {

/// Returns what the calling thread has used so far.
[[nodiscard]] ThreadUsage usage_of_thread();
/// Begins to account for a thread, which has used `used`.
void begin_fault_time(ThreadState& self, const ThreadUsage& used);
/// Decides from the thread's faults in its last `cpu_ns` whether is_fault_time() reads its accounts at each sample.
/// `used`: its usage at the end of that time.
void review_fault_time(ThreadState& self, const ThreadUsage& used, std::uint64_t faults, std::uint64_t cpu_ns);
/// True if the observation stands for time in page faults: there were many, and the kernel's accounts of the thread say
/// that its clock ran out in the kernel.
[[nodiscard]] bool is_fault_time(ThreadState& self, const collectors::Observation& seen);

}  // namespace crosstalk::in_target
