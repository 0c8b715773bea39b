// SPDX-License-Identifier: Apache-2.0
// The loops of an analysis in the rooflines of the machine that recorded it.
//
// Rates are those of one thread, in floating-point operations per second of its CPU time. Roofs are what one of the
// loop's threads can get. A loop's intensity needs no time, because the number of iterations cancels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "models/machine.h"
#include "models/roofline/carm.h"
#include "models/roofline/estimate.h"
#include "models/roofline/hierarchical.h"

namespace crosstalk::attribution {

/// A loop with its place in the rooflines.
struct RooflineLoop {
  const LoopRow* loop = nullptr;
  double threads = 1;  // that execute it at once
  models::roofline::Estimate performance, intensity;
  std::vector<models::roofline::Roof> bandwidths;  // of one thread, nearest level first
  models::roofline::Roof compute;                  // of its mix of operations
  models::roofline::Verdict carm;
  Result<models::roofline::HierarchicalVerdict> irm;
};

/// Loops that have no place, and the reason that they share.
struct Unplaced {
  std::string why;    // a clause with subject and verb, no full stop
  double self_s = 0;  // their own time
  std::uint64_t loops = 0;
};

struct Roofline {
  std::vector<RooflineLoop> loops;  // by own time
  std::vector<Unplaced> unplaced;   // by own time
  double placed_s = 0;              // own time of `loops`
};

/// Places each loop that spends at least 30 % of its time in its own code. A loop with less is left out, because its
/// inner loops have places. `analysis` must outlive the result.
[[nodiscard]] Roofline roofline_of(const Analysis& analysis, const models::Machine& machine);

}  // namespace crosstalk::attribution
