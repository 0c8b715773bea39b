// SPDX-License-Identifier: Apache-2.0
// Which heap blocks of one allocation site are to be told apart. A thousand nodes of a list that all threads use alike
// are one thing to a reader; three of them that cost what all the others do not, or one for each pair of threads, are
// several.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace crosstalk::attribution {

/// What one watch saw of a block: the two threads that exchanged most there, in the order of their numbers, and the
/// cost. Watches are drawn one by one, so sightings are independent of each other; the communications within a watch
/// are not.
struct BlockSighting {
  std::uint32_t block = 0;
  std::pair<std::uint32_t, std::uint32_t> threads;
  double cost = 0;
};

/// Blocks 0..`blocks` - 1, each in one group, in groups that behave alike; a single group where nothing tells them
/// apart. Blocks are apart where
/// - the pair of threads depends on the block: the block tells more than half of what there is to know of the pair,
///   beyond what chance would (the same sightings with their pairs shuffled);
/// - or a few of them, each seen in several watches, hold most of the cost.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> alike_blocks(std::uint32_t blocks,
                                                                   std::span<const BlockSighting> sightings);

}  // namespace crosstalk::attribution
