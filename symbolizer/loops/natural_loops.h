// SPDX-License-Identifier: Apache-2.0
// Natural loops of a control-flow graph: dominators by K. Cooper, T. Harvey, K. Kennedy, "A Simple, Fast
// Dominance Algorithm" (2001); a loop is the set of blocks that reach a back edge's source without passing its
// target, the header, which dominates them (Aho et al., "Compilers", 9.6). Loops with one header are one loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "symbolizer/cfg/control_flow.h"

namespace crosstalk::symbolizer {

struct NaturalLoop {
  std::uint32_t header = 0;  // block
  std::uint32_t parent = Loop::no_parent;
  std::uint32_t depth = 1;
  std::vector<std::uint32_t> blocks;   // sorted, inner loops' included
  std::vector<std::uint32_t> latches;  // sources of its back edges
  [[nodiscard]] bool contains(std::uint32_t block) const {
    return std::binary_search(blocks.begin(), blocks.end(), block);
  }
};

struct LoopNest {
  std::vector<NaturalLoop> loops;        // parents before children
  std::vector<std::uint32_t> innermost;  // by block; Loop::no_parent outside all loops
};

[[nodiscard]] LoopNest natural_loops(const ControlFlow& flow);

}  // namespace crosstalk::symbolizer
