// SPDX-License-Identifier: Apache-2.0
// Handles the traps of watchpoints: records each, and moves the watchpoints of the line's old and new owner.
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/watch/open_watches.h"

namespace crosstalk::in_target {

/// A watchpoint of the calling thread has fired.
struct WatchpointTrap {
  std::uint32_t event = 0;  // of the thread
  std::uint64_t address = 0;
  const Registers& registers;
  std::uint64_t flags = 0;
  std::uint64_t now_ns = 0;
};

/// False: it was not (or no longer) one of ours to report.
bool take_trap(OpenWatches& watches, ThreadState& self, const WatchpointTrap& trap);

/// Handles a watchpoint of `self` that fired while the signal was blocked: in our own handler, or in the target's. The
/// registers of that access are unknown. The event is disabled until it is next armed, so that it does not repeat. Does
/// so even if the thread is watched no more: a running handler may have armed it since, and nobody else would switch
/// that off.
void take_trap_in_handler(ThreadState& self, std::uint32_t event);

}  // namespace crosstalk::in_target
