// SPDX-License-Identifier: Apache-2.0
// crosstalk's messages: one line each on standard error, starting "crosstalk: ". Results go to standard output instead.
// Thread-safe.
#pragma once

#include <string>

namespace crosstalk::driver {

struct Verbosity {
  bool quiet = false;  // errors only
  int level = 0;       // from 1 on: progress details
};
void start_logging(Verbosity verbosity);

// Line breaks and other control characters in `text` (from a hostile file name, for example) become '?'.
void log_error(const std::string& text);
void log_warning(const std::string& text);  // after "warning: "
void log_notice(const std::string& text);   // something that a user wants to know without asking
void log_detail(const std::string& text);   // -v

/// Returns `text` with control characters replaced by '?'; UTF-8 stays.
[[nodiscard]] std::string printable(const std::string& text);

}  // namespace crosstalk::driver
