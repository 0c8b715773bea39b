// SPDX-License-Identifier: Apache-2.0
// Keeps the cost of entering blocks into the block table within its part of the overhead budget.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

/// The calling thread, whose thread pointer is this (0: not known), has run for `cpu_ns` more: charges the process for
/// the blocks that it has entered meanwhile, and now and then moves the size from which on blocks are entered
/// (watch_policy/block_threshold.h). The user's own threshold stays as it is. In a sample's handler.
void charge_blocks(std::uint64_t thread_pointer, std::uint64_t cpu_ns);

}  // namespace crosstalk::in_target
