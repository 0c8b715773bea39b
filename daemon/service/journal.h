// SPDX-License-Identifier: Apache-2.0
// The daemon's log: a line each on standard error, with its priority for systemd's journal. Thread-safe.
#pragma once

#include <string>

namespace crosstalk::service {

enum class Level { error, warning, notice, detail };

/// `details`: with lines of level detail.
void start_log(bool details);
/// Control characters in `line` become '?'.
void log_line(Level level, const std::string& line);

}  // namespace crosstalk::service
