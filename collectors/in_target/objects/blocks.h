// SPDX-License-Identifier: Apache-2.0
// The public interface to blocks of memory (block_table.h). Tracking is on from the first instruction, so that blocks
// allocated before the process is attached are known; the core then decides if it goes on, and from which size on.
#pragma once

#include <cstdint>

#include "profile/records.h"

namespace crosstalk::in_target {

struct BlockInfo {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t site = 0;  // return address of the allocating call
  profile::BlockKind kind = profile::BlockKind::heap;
  bool first_report = false;
};

/// The newest tracked block that contains `address`. `first_report` is true for exactly one caller a block.
/// Lock-free, any context. False: none is known (which does not mean that there is none).
bool find_block(std::uint64_t address, BlockInfo& out);
/// Core calls: once it knows; `on = false` when it does not attach or steps aside.
void track_blocks(bool on, std::uint64_t threshold_bytes);
/// Forgets all blocks: memory that was allocated while nothing was recorded may have reused their places. Normal
/// context.
void forget_blocks();
/// Core calls in a forked child that it goes on observing: blocks count as unreported again.
void blocks_after_fork();

}  // namespace crosstalk::in_target
