// SPDX-License-Identifier: Apache-2.0
// What /proc says of any process: whose child it is and whether it is stopped; and stopping together with one.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/unique_fd.h"

namespace crosstalk::daemon {

struct ProcessState {
  char state = 0;  // R, S, D, T (stopped), t (by a tracer), Z, ...
  pid_t parent = 0;
};

/// /proc/PID/stat; not valid when there is no such process.
[[nodiscard]] UniqueFd open_process_state(pid_t pid);
/// Nothing when the process has been reaped. Async-signal-safe.
[[nodiscard]] std::optional<ProcessState> read_process_state(const UniqueFd& file);

/// Is `pid` this ancestor, or its child, or a child's child ...?
[[nodiscard]] bool descends_from(pid_t pid, pid_t ancestor);

/// Stops the calling process by `signal` for as long as `command`, its child, is stopped: whoever waits for this
/// process as he would for the command sees it stop, and whoever lets one of them go on has both go on. Does nothing
/// where the command goes on already.
void stop_with(pid_t command, int signal);

}  // namespace crosstalk::daemon
