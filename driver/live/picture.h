// SPDX-License-Identifier: Apache-2.0
// Draws the state of the view into cells.
#pragma once

#include "driver/live/cell_buffer.h"
#include "driver/live/view_state.h"

namespace crosstalk::driver::live {

/// The least screen that has room for all parts.
inline constexpr int least_columns = 80, least_rows = 24;

/// Draws the whole screen, and tells the state how much of a page fits on it. A smaller one than the least says so.
/// `color`: shades are colours, else characters.
[[nodiscard]] CellBuffer picture_of(ViewState& state, int rows, int columns, Charset charset, bool color);

/// Draws all parts below each other, as many rows as they need.
[[nodiscard]] CellBuffer page_of(const Snapshot& snapshot, int columns, Charset charset, bool color);

}  // namespace crosstalk::driver::live
