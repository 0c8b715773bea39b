// SPDX-License-Identifier: Apache-2.0
// What the terminal, if there is one, can show; and the pager.
#pragma once

#include <sys/types.h>

#include <string>

#include "driver/text_layout.h"

namespace crosstalk::driver {

/// Columns: of the terminal at `fd`, else of $COLUMNS, else 100. At least 60, at most 400.
[[nodiscard]] int terminal_width(int fd);

/// UTF-8 unless LC_ALL, LC_CTYPE or LANG (the first that is set) names another character set.
[[nodiscard]] Charset locale_charset();

/// Whether to colour what goes to `fd`, when the user left it to us: a terminal that is not dumb, no NO_COLOR.
[[nodiscard]] bool wants_color(int fd);

/// Writes `text` to standard output, through $PAGER (default: less) when `page` and standard output is a terminal.
/// False when it could not be written; a reader that stopped reading early is no failure.
[[nodiscard]] bool write_output(const std::string& text, bool page);

}  // namespace crosstalk::driver
