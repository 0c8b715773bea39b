// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/viewing.h"

#include <malloc.h>
#include <unistd.h>

#include "driver/terminal/terminal.h"

namespace crosstalk::driver {

TextStyle style_of_output(ColorChoice color) {
  const bool colored = color == ColorChoice::always || (color == ColorChoice::automatic && wants_color(STDOUT_FILENO));
  return {terminal_width(STDOUT_FILENO), locale_charset(), colored};
}

void return_freed_blocks() { mallopt(M_MMAP_THRESHOLD, 1 << 20); }

}  // namespace crosstalk::driver
