// SPDX-License-Identifier: Apache-2.0
// Whether a sample is followed by a lookahead: what its thread executes next, interpreted (access/lookahead.h).
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "collectors/in_target/threads/thread_state.h"

namespace crosstalk::in_target {

/// Looks ahead from the interrupted registers and records it, if the budget allows it and chance wants it here. Returns
/// the thread's CPU time that it took, 0 for none. In the clock's handler of a thread that was interrupted in user
/// mode.
std::uint64_t perhaps_look_ahead(ThreadState& self, const Registers& registers, std::uint64_t flags,
                                 std::uint64_t now_ns);

}  // namespace crosstalk::in_target
