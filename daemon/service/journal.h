// SPDX-License-Identifier: Apache-2.0
// The daemon's log: a line each on standard error, with its priority for systemd's journal. Thread-safe.
#pragma once

#include <string>

namespace crosstalk::service {

enum class Level { error, warning, notice, detail };

/// `details`: with lines of level detail.
void start_log(bool details);
/// Returns `line` with '?' for each control character.
[[nodiscard]] std::string printable(const std::string& line);
/// Logs printable(line).
void log_line(Level level, const std::string& line);

}  // namespace crosstalk::service
