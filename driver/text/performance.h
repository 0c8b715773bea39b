// SPDX-License-Identifier: Apache-2.0
// The table of performance data (models/busy_time.h) as text, as far as a loop's figures are known.
#pragma once

#include "attribution/model/model.h"
#include "driver/terminal/canvas.h"

namespace crosstalk::driver {

/// Draws elapsed time, operations, instructions, accesses and bytes of a loop that has figures: of one thread, of all,
/// and in total. Lists unknown figures with the reason. Below it: how threads share the time.
void draw_performance(Canvas& canvas, const attribution::Analysis& analysis, const attribution::LoopRow& loop);

}  // namespace crosstalk::driver
