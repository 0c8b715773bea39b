// SPDX-License-Identifier: Apache-2.0
// The original roofline model (ORM): the DRAM bound of a loop, and which optimisation lifts it. A loop is one point, at
// its operational intensity: operations over the bytes that move between memory and the caches.
//
// Source: as ceilings.h, A.1 and fig. A1.
#pragma once

#include <optional>
#include <span>

#include "base/result.h"
#include "models/roofline/verdict.h"

namespace crosstalk::models::roofline {

/// A.1: min(AI B, in-core ceiling, mix ceiling), flop/s.
[[nodiscard]] Result<Estimate> orm_bound(const Estimate& intensity, const Roof& bandwidth, const Roof& in_core,
                                         const std::optional<Roof>& mix = {});

/// The verdict among roofs and ceilings, in any order; the highest of each kind is the roof. A ceiling that meets the
/// vertical at or above the roofline bounds nothing there and is left out. The region is memory left of the ridge and
/// compute right of it. Advice: the optimisation that reaches the next ceiling, then a higher intensity left of the
/// ridge (fig. A1). Fails without a roof of either kind, or if the intensity may be 0.
[[nodiscard]] Result<Verdict> orm_verdict(std::span<const Roof> bandwidths, std::span<const Roof> compute,
                                          const Estimate& intensity, const Estimate& performance);

}  // namespace crosstalk::models::roofline
