// SPDX-License-Identifier: Apache-2.0
// Parts of --view memory as text.
#pragma once

#include <string>

#include "attribution/model/model.h"
#include "driver/terminal/canvas.h"

namespace crosstalk::driver {

/// Draws the lines that threads share, each with the threads' accesses by offset.
void draw_shared_lines(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Draws which threads communicate, judged by samples that are near in time.
void draw_sampled_sharing(Canvas& canvas, const attribution::Analysis& analysis);
/// Formats a cost in seconds, or in cycles if a cycle's length is unknown.
[[nodiscard]] std::string memory_cost_cell(const attribution::AccessFigures& figures);

}  // namespace crosstalk::driver
