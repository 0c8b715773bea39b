// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace crosstalk::daemon {

/// Reads one line of /proc/PID/task/TID/`name`; nullopt if there is no such thread or file.
[[nodiscard]] std::optional<std::string> task_file(pid_t pid, pid_t tid, const char* name);

}  // namespace crosstalk::daemon
