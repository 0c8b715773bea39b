// SPDX-License-Identifier: Apache-2.0
// Writing records into threads' rings. emit(), for the interposed functions, is declared in contract/core.h.
#pragma once

#include <cstddef>

#include "collectors/in_target/core/thread_state.h"

namespace crosstalk::in_target {

/// Appends a record to a thread's ring; only its own thread may. False: the ring is full, which is counted.
/// Signal-safe.
bool append(ThreadState& self, const void* record, std::size_t bytes, const void* tail, std::size_t tail_bytes);

}  // namespace crosstalk::in_target
