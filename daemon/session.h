// SPDX-License-Identifier: Apache-2.0
// A recording session: makes the arena, starts the command under observation, drains the rings into the
// profile until the command and all observed descendants have ended (or the session is told to stop).
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/attached_processes.h"
#include "daemon/record_options.h"

namespace crosstalk::daemon {

/// Runs the whole session. The outcome holds the command's exit status (128+N if signal N killed it). An Error means
/// that the command was not started; its code says why (not_found -> 127, not_executable -> 126, others -> 125).
/// ErrorCode::system: a resource limit leaves the recorder too little, but the command can run.
[[nodiscard]] Result<RecordOutcome> record(const RecordOptions& options);

/// Records running processes until they end, their time is up, or the session is told to stop (SIGINT, SIGTERM, ...).
/// The outcome's status is 0. An Error means that nothing was recorded.
[[nodiscard]] Result<RecordOutcome> record_attached(const RecordOptions& options, const Attachment& attachment);

/// Returns the attachment to the command with this process id.
using CommandAttachment = std::function<Attachment(pid_t pid)>;

/// As record(), but without loading anything into the command: attaches from its first instruction on, or after the
/// attachment's delay.
[[nodiscard]] Result<RecordOutcome> record_from_outside(const RecordOptions& options,
                                                        const CommandAttachment& attachment);

/// Becomes the command, unrecorded, with its original limits. Returns the error if that fails.
[[nodiscard]] Error execute_unrecorded(const std::vector<std::string>& command);

}  // namespace crosstalk::daemon
