// SPDX-License-Identifier: Apache-2.0
// Watches that processes keep together, in the arena's exchange (cross_process_state.h): a slot of each process refers
// to the common watch of its number. The slot's lock is held throughout, except for is_over() and find_common().
// Signal-safe.
#pragma once

#include <cstdint>

#include "collectors/in_target/watch/watch_slot.h"

namespace crosstalk::in_target {

/// Claims the common watch of the slot's number for a watch of `line` that the slot is about to begin. False: processes
/// keep one already, or another process is about to.
bool claim_common(WatchSlot& slot, const SharedLine& line, std::uint64_t now_ns);
/// Publishes the watch that has begun in the slot: from here on other processes may join.
void publish_common(WatchSlot& slot);

/// A common watch whose line is mapped in this process.
struct CommonWatch {
  std::uint32_t id = 0;  // 0: none
  SharedLine line;
  std::uint64_t address = 0;  // of the line in this process
  std::uint32_t words = 0;
};
/// Finds the common watch of slot number `index`, if there is one that this process can join.
[[nodiscard]] CommonWatch find_common(std::uint32_t index, std::uint64_t now_ns);
/// Copies the common watch into a free slot, except its id. False: it changed meanwhile, so the slot stays free.
bool adopt_common(WatchSlot& slot, const CommonWatch& found);

/// True if the slot's watch `id` is a common one that is over.
[[nodiscard]] bool is_over(const WatchSlot& slot, std::uint32_t id);
/// True for the one process that ends it.
bool end_common(WatchSlot& slot, std::uint32_t id);

}  // namespace crosstalk::in_target
