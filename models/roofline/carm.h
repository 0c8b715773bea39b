// SPDX-License-Identifier: Apache-2.0
// The cache-aware roofline model (CARM): a loop's bottleneck as its core sees it. A loop is one point, at the intensity
// of the bytes that the core requests; each level has a roof, the bandwidth that a core sustains from it.
//
// Source: SPARCITY D1.2, chapter 2, fig. 1a and equation 2; chapter 3, equations 12 and 13.
//
// Limits: roofs need tuned, regular code. The model knows neither limited windows of instructions nor instructions
// without operations.
#pragma once

#include <vector>

#include "base/result.h"
#include "models/roofline/verdict.h"

namespace crosstalk::models::roofline {

class Carm {
 public:
  /// `bandwidths`: B_y of each level, sustained from the core; `compute`: F_p. No roof exceeds a nearer level's: data
  /// of a farther level pass the nearer ones. A nearer level that was measured slower was disturbed: it gets the
  /// farther one's bandwidth, basis modelled. See `levels_in_order` for what is refused.
  [[nodiscard]] static Result<Carm> of(std::vector<Roof> bandwidths, Roof compute);

  [[nodiscard]] const std::vector<Roof>& bandwidths() const { return bandwidths_; }  ///< nearest level first
  /// flop/B of the nearest and of the farthest level.
  [[nodiscard]] const Estimate& near_ridge() const { return near_ridge_; }
  [[nodiscard]] const Estimate& far_ridge() const { return far_ridge_; }

  /// flop/s of a level at an intensity: min(B_y AI, F_p). Fails for a level without a roof.
  [[nodiscard]] Result<Estimate> attainable(Level level, const Estimate& intensity) const;
  [[nodiscard]] Region region(const Estimate& intensity) const;
  /// The points of all roofs on the vertical at an intensity: of the levels whose ridge is to the right, and of the
  /// compute roof if the nearest level's ridge is to the left.
  [[nodiscard]] Result<std::vector<Intersection>> intersections(const Estimate& intensity) const;
  /// The roofs next above and below the point are what to optimise for. Fails if the intensity may be 0.
  [[nodiscard]] Result<Verdict> judge(const Estimate& intensity, const Estimate& performance) const;

 private:
  Carm(std::vector<Roof> bandwidths, Roof compute, Estimate near_ridge, Estimate far_ridge);
  std::vector<Roof> bandwidths_;
  Roof compute_;
  Estimate near_ridge_, far_ridge_;
};

/// Judges a point below the roofs of these bandwidths, highest first. See Carm::intersections() and Carm::judge().
[[nodiscard]] Result<Verdict> judge_below(const std::vector<Roof>& bandwidths, const Roof& compute,
                                          const Estimate& intensity, const Estimate& performance);

/// Seconds: T = max(bytes / B, flops / F), transfers and operations at the same time (SPARCITY D1.2, eq. 12).
[[nodiscard]] Result<Estimate> least_time(const Estimate& bytes, const Estimate& flops, const Roof& bandwidth,
                                          const Roof& compute);

}  // namespace crosstalk::models::roofline
