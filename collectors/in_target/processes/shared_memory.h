// SPDX-License-Identifier: Apache-2.0
// Shared memory as samples meet it: which mapping, what of, and which other processes use it.
#pragma once

#include <cstdint>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/processes/cross_process_state.h"

namespace crosstalk::in_target {

/// The arena's; valid while the process is attached.
CrossProcessState& cross_process_state();

/// Returns the shared line at `address`. The first sample in a mapping asks the kernel for its identity, and records
/// it: some ten microseconds, once. Notes that this process uses the memory, and tells if others do. Signal-safe.
SharedLine find_shared_line(ThreadState& self, std::uint64_t address, std::uint64_t now_ns);

/// True if this process takes part in the exchange: from its first sample in shared memory on.
bool sharing();

/// A process that has a line mapped, and where.
struct SharedUse {
  std::int32_t pid = 0;
  std::uint64_t line = 0;
};
/// Finds the other processes that have been sampled in the memory of `line`; returns their number, `capacity` at most.
std::uint32_t find_uses(const SharedLine& line, SharedUse* uses, std::uint32_t capacity);
/// Another process's threads could not be armed for want of permission. Signal-safe.
void remote_events_refused();

/// In a forked child that is observed: it has to find out anew.
void shared_memory_after_fork();

}  // namespace crosstalk::in_target
