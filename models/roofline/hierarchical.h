// SPDX-License-Identifier: Apache-2.0
// The hierarchical and the integrated roofline model: the level whose traffic limits a loop. A loop is one point for
// each level, at its operations over that level's bytes.
//
// Source: SPARCITY D1.2, chapter 2, figs 1b and 1c. The two differ in their roofs only: the hierarchical model has the
// bandwidth between levels, the integrated one (IRM) the bandwidth that a core sustains from a level, as the
// cache-aware model has.
#pragma once

#include <vector>

#include "base/result.h"
#include "models/roofline/loop_point.h"
#include "models/roofline/verdict.h"

namespace crosstalk::models::roofline {

struct LevelPoint {
  Level level = Level::l1d;
  Result<Estimate> intensity;  ///< flop/B; absent if the level may move no bytes, or if they are not known
  Result<Estimate> bound;      ///< flop/s: min(AI_y B_y, F), also where the level may move no bytes
};

struct HierarchicalVerdict {
  std::vector<LevelPoint> points;             ///< nearest level first, one for each bandwidth roof
  Result<Estimate> bound = unknown("bytes");  ///< flop/s: the least bound; absent if no level's traffic is known
  std::optional<Level> bottleneck;            ///< the level of the least bound; absent: the compute roof, or undecided
  Region region = Region::undecided;          ///< memory if a level is the bottleneck, compute if the compute roof is
  Result<Estimate> gain_bound = unknown("bytes");  ///< bound / performance, at least 1; absent above the bound
  std::vector<Advice> advice;
  std::string undecided;  ///< the reason, half a sentence; empty: the verdict is decided
};

/// bound = min over y of min(AI_y B_y, F); the bottleneck is the level of the minimum. Undecided if the intervals of
/// the two lowest bounds overlap, or if a level's traffic is not known, which may be lower still. `bandwidths`: see
/// `levels_in_order` for what is refused. Fails if the operations of the loop are not known or 0.
[[nodiscard]] Result<HierarchicalVerdict> hierarchical_verdict(const std::vector<Roof>& bandwidths, const Roof& compute,
                                                               const LoopPoint& point);

}  // namespace crosstalk::models::roofline
