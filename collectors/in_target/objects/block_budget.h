// SPDX-License-Identifier: Apache-2.0
// Keeps the cost of entering blocks into the block table within its part of the overhead budget.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

/// Called after the calling thread, with this thread pointer (0: not known), has run for `cpu_ns` more. Charges the
/// process for the blocks that the thread has entered meanwhile, and now and then moves the size from which on blocks
/// are entered (watch_policy/block_threshold.h). Does not change the user's own threshold. In a sample's handler.
void charge_blocks(std::uint64_t thread_pointer, std::uint64_t cpu_ns);

}  // namespace crosstalk::in_target
