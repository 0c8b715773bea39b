// SPDX-License-Identifier: Apache-2.0
// Figures beside a source line or an instruction: time, cost, gain, and threads.
#pragma once

#include <string>

#include "driver/terminal/canvas.h"
#include "driver/words/source_notes.h"

namespace crosstalk::driver {

/// The figures' columns; a narrow terminal lacks room for some.
struct FigureColumns {
  bool gain, who, loop;
  int number;  // columns of the line's number or the instruction's address
};
[[nodiscard]] FigureColumns figure_columns(const Canvas& canvas, int number, bool loop);

/// Returns the columns that are left for the text behind the number.
[[nodiscard]] int text_columns(const Canvas& canvas, const FigureColumns& columns);

/// The greatest figures, which heat is relative to.
struct Greatest {
  double share = 0, cost_s = 0;
  void add(const LineNote& note);
};

/// `note` null: no figures are known. `loop`: the text of the loop's column.
[[nodiscard]] std::string figures(const Canvas& canvas, const FigureColumns& columns, const LineNote* note,
                                  const Greatest& greatest, const std::string& loop);

/// `number`: heading of the last column.
void draw_figure_heads(Canvas& canvas, const FigureColumns& columns, const std::string& number);

/// "  ⋮ 12 lines"
void draw_gap(Canvas& canvas, std::size_t count, const char* what);

}  // namespace crosstalk::driver
