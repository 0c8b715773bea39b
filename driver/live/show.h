// SPDX-License-Identifier: Apache-2.0
// Shows pictures as a full screen, one text, or lines of JSON. Each returns the exit status.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/signals.h"
#include "driver/live/feed.h"
#include "driver/terminal/canvas.h"

namespace crosstalk::driver::live {

struct ShowOptions {
  std::uint64_t count = 0;  // pictures after which it ends; 0: none
  std::string sysroot;      // where sources are looked for first
  TextStyle style;          // of text, and of the screen but for its width
};

/// The signals that end a view are in `signals`; those of a terminal's size and of job control are taken here.
[[nodiscard]] int show_screen(Feed& feed, const daemon::SignalWatch& signals, const ShowOptions& options);

/// Prints the picture when `window_s` are covered, or `count` pictures have come, or no more will.
[[nodiscard]] int show_once(Feed& feed, const daemon::SignalWatch& signals, const ShowOptions& options,
                            double window_s);

/// Prints each picture as a line of "crosstalk.top/1". A reader that goes away ends it.
[[nodiscard]] int show_json(Feed& feed, const daemon::SignalWatch& signals, const ShowOptions& options);

/// Blocks the signals that show_screen() takes itself. Call it before threads are made.
void hold_terminal_signals();

}  // namespace crosstalk::driver::live
