// SPDX-License-Identifier: Apache-2.0
// crosstalk's own words: one line each on standard error, starting "crosstalk: ". Not for results, which go to
// standard output. Thread-safe.
#pragma once

#include <string>

namespace crosstalk::driver {

struct Verbosity {
  bool quiet = false;  // errors only
  int level = 0;       // from 1 on: what is done
};
void start_logging(Verbosity verbosity);

// Line breaks and other control characters in `text` (a hostile file name, say) are shown as '?'.
void log_error(const std::string& text);
void log_warning(const std::string& text);  // after "warning: "
void log_notice(const std::string& text);   // what a user wants to know without asking
void log_detail(const std::string& text);   // -v

/// `text` with control characters (but not UTF-8) replaced by '?'.
[[nodiscard]] std::string printable(const std::string& text);

}  // namespace crosstalk::driver
