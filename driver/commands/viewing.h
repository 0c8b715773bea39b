// SPDX-License-Identifier: Apache-2.0
// Parts that the commands share that show profiles.
#pragma once

#include "driver/options/view_options.h"
#include "driver/terminal/canvas.h"

namespace crosstalk::driver {

/// Returns the style of text for people on standard output.
[[nodiscard]] TextStyle style_of_output(ColorChoice color);

/// Makes the allocator return freed large blocks to the system. By default glibc raises its threshold: after blocks of
/// up to 32 MiB are freed, it keeps such blocks, between small ones that are still in use. Call it before an analysis.
void return_freed_blocks();

}  // namespace crosstalk::driver
