// SPDX-License-Identifier: Apache-2.0
// The mansard roofline model (MaRM): one hill for each level, with the intervals of its figures, horizontals of
// retirement, and the verdict on a loop. mansard_equations.h has the source, the symbols and the formulas.
#pragma once

#include <vector>

#include "base/result.h"
#include "models/roofline/mansard_equations.h"
#include "models/roofline/verdict.h"

namespace crosstalk::models::roofline {

/// The figures of a level as measured.
struct Hill {
  Level level = Level::l1d;
  Estimate memory_most, memory_at_ridge;
};

/// A loop's point.
struct MansardPoint {
  Estimate intensity;
  Estimate ipc;         ///< of one core
  bool scalar = false;  ///< most of its non-memory work is done by scalar instructions
};

class Mansard {
 public:
  /// Refuses an empty list, a level named twice, figures that may be 0, and m surely above M.
  /// `other`: N of the loop's kind of instructions. `retire_width`: D_M.
  [[nodiscard]] static Result<Mansard> of(std::vector<Hill> hills, const Estimate& other, double retire_width);

  [[nodiscard]] const std::vector<Hill>& hills() const { return hills_; }  ///< nearest level first
  /// R of the nearest and of the farthest level.
  [[nodiscard]] const Estimate& near_ridge() const { return near_ridge_; }
  [[nodiscard]] const Estimate& far_ridge() const { return far_ridge_; }
  /// 1RS, 2RS, ... D_M: horizontals at whole numbers of retired instructions a cycle and at D_M.
  [[nodiscard]] std::vector<Roof> retirement_roofs() const;

  /// IPC that a level allows at an intensity, with the range over the intervals of all figures. No level's roof exceeds
  /// a nearer level's: where a farther level's hill is higher, the nearer level has that height. Fails for a level
  /// without a hill.
  [[nodiscard]] Result<Estimate> ipc(Level level, const Estimate& intensity) const;
  [[nodiscard]] Region region(const Estimate& intensity) const;
  /// Hills, and the horizontals up to the highest hill there, on the vertical at an intensity. A hill that D_M clips is
  /// left out, and so is one right of its ridge as high as the hill of a nearer level: they add no bound.
  [[nodiscard]] Result<std::vector<Intersection>> intersections(const Estimate& intensity) const;
  /// Memory: accesses. Compute: vectors. Mixed: either, and latency too. A scalar loop at a horizontal: vectors,
  /// although IPC may fall.
  [[nodiscard]] Result<Verdict> judge(const MansardPoint& point) const;

 private:
  Mansard(std::vector<Hill> hills, const Estimate& other, double retire_width, const Estimate& near_ridge,
          const Estimate& far_ridge);
  std::vector<Hill> hills_;
  Estimate other_;
  double retire_width_;
  Estimate near_ridge_, far_ridge_;
};

}  // namespace crosstalk::models::roofline
