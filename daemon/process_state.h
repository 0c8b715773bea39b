// SPDX-License-Identifier: Apache-2.0
// Reads a process's parent and state from /proc, and stops together with a process.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/unique_fd.h"

namespace crosstalk::daemon {

struct ProcessState {
  char state = 0;  // R, S, D, T (stopped), t (by a tracer), Z, ...
  pid_t parent = 0;
};

/// Opens /proc/PID/stat; invalid if there is no such process.
[[nodiscard]] UniqueFd open_process_state(pid_t pid);
/// Returns nullopt if the process has been reaped. Async-signal-safe.
[[nodiscard]] std::optional<ProcessState> read_process_state(const UniqueFd& file);

/// True if `pid` is `ancestor` or one of its descendants.
[[nodiscard]] bool descends_from(pid_t pid, pid_t ancestor);

/// Stops the calling process by `signal` while `command`, its child, is stopped. A shell that waits for this process
/// then sees the command's stop, and a SIGCONT to either continues both. Does nothing if the command already runs
/// again.
void stop_with(pid_t command, int signal);

}  // namespace crosstalk::daemon
