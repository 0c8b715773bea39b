// SPDX-License-Identifier: Apache-2.0
// The source's table of performance data (models/busy_time.h), as far as it is known of a loop, as text.
#pragma once

#include "attribution/model.h"
#include "driver/text_canvas.h"

namespace crosstalk::driver {

/// Elapsed time, operations, instructions, accesses and bytes of a loop that has figures: of one thread, of all, and
/// altogether. What is not known is named with the reason. Below it, how threads share the time.
void draw_performance(Canvas& canvas, const attribution::Analysis& analysis, const attribution::LoopRow& loop);

}  // namespace crosstalk::driver
