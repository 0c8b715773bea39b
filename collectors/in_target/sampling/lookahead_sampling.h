// SPDX-License-Identifier: Apache-2.0
// Decides if a sample is followed by a lookahead, which interprets what the thread executes next (access/lookahead.h).
#pragma once

#include <cstdint>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/observation.h"

namespace crosstalk::in_target {

/// Before the first lookahead, outside of handlers: asks what this processor has.
void prepare_to_look_ahead();

/// Looks ahead from the registers that were seen and records it, if the budget allows it and chance wants it here.
/// Returns the thread's CPU time that it took, 0 for none. In the clock's handler of a thread that was interrupted in
/// user mode.
std::uint64_t perhaps_look_ahead(ThreadState& self, const collectors::Observation& seen);

}  // namespace crosstalk::in_target
