// SPDX-License-Identifier: Apache-2.0
// Shared memory as samples meet it: which mapping, what of, and which other processes use it.
#pragma once

#include <cstdint>

#include "collectors/in_target/processes/cross_process_state.h"
#include "collectors/in_target/threads/thread_state.h"

namespace crosstalk::in_target {

/// The arena's; valid while the process is attached.
CrossProcessState& cross_process_state();

/// The shared line at `address`. The first sample in a mapping asks the kernel what it is of, and records it: some
/// ten microseconds, once. Notes that this process uses the memory, and tells whether others do. Signal-safe.
SharedLine find_shared_line(ThreadState& self, std::uint64_t address, std::uint64_t now_ns);

/// This process keeps out of the exchange from now on, and says so. Signal-safe.
void stop_sharing();

/// Does this process take part in the exchange? From the first sample in memory that it shares.
bool sharing();

/// Signals one thread of each other process that was sampled lately in what is mapped at `line`; how many it were.
std::uint32_t kick_users(const SharedLine& line, std::uint64_t now_ns);

/// In a forked child that is observed: it has to find out anew.
void shared_memory_after_fork();

}  // namespace crosstalk::in_target
