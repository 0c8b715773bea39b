// SPDX-License-Identifier: Apache-2.0
// The roofs of a calibrated machine for one thread of a loop.
//
// A roof is one thread's part of what `crosstalk calibrate` measured on one core and on all: a loop of several threads
// is compared with what each of its threads can have (models/peaks.h). Intervals are the spread of the tries, and 10 %
// to each side at least: the machine of the recording is not the machine of the calibration to the last per cent.
#pragma once

#include <vector>

#include "base/result.h"
#include "models/machine.h"
#include "models/peaks.h"
#include "models/roofline/roof.h"

namespace crosstalk::models::roofline {

/// B/s that a core sustains from each level by loads, nearest level first: the slanted roofs of the cache-aware model
/// (SPARCITY D1.2, 2, fig. 1a). Levels without a figure are left out. `threads` >= 1 run at the same time.
[[nodiscard]] std::vector<Roof> load_roofs(const Machine& machine, double threads);

/// flop/s of one thread for this mix of operations: operations of different width and kind take the units one after
/// the other. Fails if a kind in the mix was not measured, or for an empty mix.
[[nodiscard]] Result<Roof> compute_roof(const Machine& machine, const FlopMix& mix, double threads);

/// flop/s of one thread for each width that was measured: fused multiply-adds if the width has them, else additions.
[[nodiscard]] std::vector<Roof> width_roofs(const Machine& machine, Precision precision, double threads);

}  // namespace crosstalk::models::roofline
