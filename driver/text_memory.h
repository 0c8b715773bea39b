// SPDX-License-Identifier: Apache-2.0
// Parts of --view memory as text.
#pragma once

#include <string>

#include "attribution/model.h"
#include "driver/text_canvas.h"

namespace crosstalk::driver {

/// Lines that threads share, each with who accesses it at which offset.
void draw_shared_lines(Canvas& canvas, const attribution::Analysis& analysis, std::size_t most);
/// Which threads communicate, by samples near in time.
void draw_sampled_sharing(Canvas& canvas, const attribution::Analysis& analysis);
/// In seconds, or in cycles where it is not known how long one takes.
[[nodiscard]] std::string memory_cost_cell(const attribution::AccessFigures& figures);

}  // namespace crosstalk::driver
