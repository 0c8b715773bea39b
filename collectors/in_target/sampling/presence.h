// SPDX-License-Identifier: Apache-2.0
// The cost of observing to a thread while no handler runs: its clock and its watchpoints make context switches dearer,
// and armed watchpoints make copies slower (core/armed_cost.h). All signal-safe.
#pragma once

#include "collectors/in_target/core/thread_state.h"
#include "collectors/observation.h"

namespace crosstalk::in_target {

/// Begins to charge a thread, from now on.
void begin_presence(ThreadState& self);
/// Learns from an observation how much the thread copies, and has the kernel copy.
void learn_copying(ThreadState& self, const collectors::Observation& seen);
/// Tells the processes of the recording when this one last had an event open. To be called often.
void note_events(std::uint64_t now_ns);
/// Charges the calling thread, and its process's budget, what presence has cost since the last call.
void charge_presence(ThreadState& self);

}  // namespace crosstalk::in_target
