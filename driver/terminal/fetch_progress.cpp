// SPDX-License-Identifier: Apache-2.0
#include "driver/terminal/fetch_progress.h"

#include <fmt/format.h>

#include "driver/terminal/layout.h"

namespace crosstalk::driver {

using symbolizer::Debuginfod;

std::string describe_wait(const Debuginfod::Wait& wait) {
  constexpr std::size_t enough_to_tell = 8;
  const std::string what = "fetching debug information " + wait.build_id.substr(0, enough_to_tell);
  if (wait.total <= 0) {
    return fmt::format("{}, no answer for {:.0f} s", what, wait.seconds);
  }
  return fmt::format("{}, {} of {}, {:.0f} s", what, bytes_text(static_cast<std::uint64_t>(wait.received)),
                     bytes_text(static_cast<std::uint64_t>(wait.total)), wait.seconds);
}

FetchProgress::FetchProgress() : line_(true) {
  Debuginfod::on_wait([this](const Debuginfod::Wait& wait) {
    constexpr double worth_a_line_s = 0.5;  // cached files arrive at once
    if (wait.over) {
      line_.erase();
    } else if (wait.seconds >= worth_a_line_s) {
      line_.show(describe_wait(wait));
    }
  });
}

FetchProgress::~FetchProgress() { Debuginfod::on_wait({}); }

}  // namespace crosstalk::driver
