// SPDX-License-Identifier: Apache-2.0
// What becomes of an observation (collectors/observation.h) in its handler, step by step: it is accounted for, its
// access is found and published, its line perhaps watched, and it is written.
#pragma once

#include <ucontext.h>

#include "collectors/in_target/threads/thread_state.h"

namespace crosstalk::in_target {

/// Takes one sample of the calling thread, by the source that it is sampled by. In that source's handler only.
void take_sample(ThreadState& self, const ucontext_t& context);

/// The calling thread ends: what of its accesses was sampled since its clock went off last is written.
void take_last_accesses(ThreadState& self);

}  // namespace crosstalk::in_target
