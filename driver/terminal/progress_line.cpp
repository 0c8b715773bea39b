// SPDX-License-Identifier: Apache-2.0
#include "driver/terminal/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "attribution/model/sentences.h"
#include "driver/terminal/layout.h"
#include "driver/terminal/terminal.h"

namespace crosstalk::driver {

std::string describe_progress(const daemon::Progress& progress) {
  return fmt::format("{:.1f} s, {}, {}, {} trapped, overhead {:.1f} %", progress.elapsed_s,
                     attribution::count_of(progress.threads, "thread", "threads"),
                     attribution::count_of(progress.samples, "sample", "samples"),
                     attribution::count_of(progress.traps, "access", "accesses"), progress.overhead * 100);
}

ProgressLine::ProgressLine(bool enabled) : enabled_(enabled && ::isatty(STDERR_FILENO) == 1) {
  const char* const terminal = std::getenv("TERM");
  enabled_ = enabled_ && terminal != nullptr && std::string_view(terminal) != "dumb";
}

void ProgressLine::show(const daemon::Progress& progress) { show(describe_progress(progress)); }

void ProgressLine::show(const std::string& text) {
  if (!enabled_) {
    return;
  }
  // Cut to the terminal's width, because a wrapped line cannot be erased.
  const int width = terminal_width(STDERR_FILENO) - 1;
  const std::string line = fit_end("crosstalk: " + text, width, Charset::ascii);
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::erase() {
  if (shown_) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    shown_ = false;
  }
}

}  // namespace crosstalk::driver
