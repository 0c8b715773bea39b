// SPDX-License-Identifier: Apache-2.0
// The loops of an analysis in the rooflines of the machine that recorded it.
//
// All rates are those of one thread: floating-point operations a second of its CPU time, against the roofs that one of
// the loop's threads can have. A loop's intensity needs no time: the number of iterations cancels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "models/machine.h"
#include "models/roofline/carm.h"
#include "models/roofline/hierarchical.h"
#include "models/roofline/loop_point.h"

namespace crosstalk::attribution {

/// A loop with its place in the rooflines.
struct RooflineLoop {
  const LoopRow* loop = nullptr;
  models::roofline::LoopPoint point;  // of one iteration of one thread
  double threads = 1;                 // that execute it at once
  models::roofline::Estimate performance, intensity;
  std::vector<models::roofline::Roof> bandwidths;  // of one thread, nearest level first
  models::roofline::Roof compute;                  // of its mix of operations
  models::roofline::Verdict carm;
  Result<models::roofline::HierarchicalVerdict> irm;
};

/// Loops that have no place, and the reason that they share.
struct Unplaced {
  std::string why;  // half a sentence
  double cpu_s = 0;
  std::uint64_t loops = 0;
};

struct Roofline {
  std::vector<RooflineLoop> loops;  // by CPU time
  std::vector<Unplaced> unplaced;   // by CPU time
  double placed_s = 0;              // CPU time in `loops`, without those inside them
};

/// Places each loop that works itself: loops that leave 70 % of their time to loops inside are left out, for these have
/// places. `analysis` must outlive the result.
[[nodiscard]] Roofline roofline_of(const Analysis& analysis, const models::Machine& machine);

}  // namespace crosstalk::attribution
