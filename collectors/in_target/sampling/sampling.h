// SPDX-License-Identifier: Apache-2.0
// Processes an observation (collectors/observation.h) in its handler, step by step: accounts for it, finds and
// publishes its access, perhaps watches its line, and writes it.
#pragma once

#include <ucontext.h>

#include "collectors/in_target/core/thread_state.h"

namespace crosstalk::in_target {

/// Takes one sample of the calling thread, by the source that it is sampled by. In that source's handler only.
void take_sample(ThreadState& self, const ucontext_t& context);

/// Writes the accesses that were sampled since the clock of the calling thread, which ends, went off last.
void take_last_accesses(ThreadState& self);

}  // namespace crosstalk::in_target
