// SPDX-License-Identifier: Apache-2.0
// Figures beside a line of source or an instruction: time, cost, gain, and which threads.
#pragma once

#include <string>

#include "driver/source_notes.h"
#include "driver/text_canvas.h"

namespace crosstalk::driver {

/// What the columns of figures show; narrow terminals have no room for all of it.
struct FigureColumns {
  bool gain, who, loop;
  int number;  // columns of the line's number or the instruction's address
};
[[nodiscard]] FigureColumns figure_columns(const Canvas& canvas, int number, bool loop);

/// Columns that are left for the text behind the number.
[[nodiscard]] int text_columns(const Canvas& canvas, const FigureColumns& columns);

/// What heat is relative to.
struct Greatest {
  double share = 0, cost_s = 0;
  void add(const LineNote& note);
};

/// `note` null: nothing is known. `loop`: what stands in the loop's column.
[[nodiscard]] std::string figures(const Canvas& canvas, const FigureColumns& columns, const LineNote* note,
                                  const Greatest& greatest, const std::string& loop);

/// `number`: what the last of them is.
void draw_figure_heads(Canvas& canvas, const FigureColumns& columns, const std::string& number);

/// "  ⋮ 12 lines"
void draw_gap(Canvas& canvas, std::size_t count, const char* what);

}  // namespace crosstalk::driver
