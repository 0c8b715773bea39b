// SPDX-License-Identifier: Apache-2.0
// Decides which heap blocks of one allocation site to separate. A thousand nodes of a list that all threads use in the
// same way are one thing to a reader. Three of them that cost as much as all others, or one for each pair of threads,
// are several.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace crosstalk::attribution {

/// The observation of one watch on a block: the two threads that exchanged most there, in the order of their numbers,
/// and the cost. Watches are drawn one by one, so sightings are independent of each other; the communications within a
/// watch are not.
struct BlockSighting {
  std::uint32_t block = 0;
  std::pair<std::uint32_t, std::uint32_t> threads;
  double cost = 0;
};

/// Divides blocks 0..`blocks` - 1 into groups that behave alike, each block in one group; a single group if nothing
/// separates them. Blocks are separated if
/// - the pair of threads depends on the block: the block gives more than half of the information on the pair, beyond
///   what chance would (the same sightings with their pairs shuffled);
/// - or a few of them, each seen in several watches, hold most of the cost.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> alike_blocks(std::uint32_t blocks,
                                                                   std::span<const BlockSighting> sightings);

}  // namespace crosstalk::attribution
