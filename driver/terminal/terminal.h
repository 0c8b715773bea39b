// SPDX-License-Identifier: Apache-2.0
// The terminal's abilities, if there is one; and the pager.
#pragma once

#include <sys/types.h>

#include <string>

#include "driver/terminal/layout.h"

namespace crosstalk::driver {

/// Returns the width in columns: of the terminal at `fd`, else of $COLUMNS, else 100. Range 60..400.
[[nodiscard]] int terminal_width(int fd);

/// Returns UTF-8 unless LC_ALL, LC_CTYPE or LANG (the first that is set) names another character set.
[[nodiscard]] Charset locale_charset();

/// True if output to `fd` gets colours by default: a terminal that is not dumb, and no NO_COLOR.
[[nodiscard]] bool wants_color(int fd);

/// True if the terminal named by TERM can be drawn on.
[[nodiscard]] bool can_draw();

/// Writes `text` to standard output, through $PAGER (default: less) if `page` and standard output is a terminal. False
/// on a write error; a reader that stops early is no error.
[[nodiscard]] bool write_output(const std::string& text, bool page);

}  // namespace crosstalk::driver
