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

/// Runs the whole session. The command's exit status (128+N when killed by signal N) is in the outcome.
/// An Error means that the command was not started; its code tells why (not_found -> 127,
/// not_executable -> 126, others -> 125). ErrorCode::system: a limit of resources leaves the recorder too little, and
/// nothing stands against running the command.
[[nodiscard]] Result<RecordOutcome> record(const RecordOptions& options);

/// The same of running processes, until they end, their time is up, or the session is told to stop (SIGINT, SIGTERM,
/// ...). The outcome's status is 0. An Error means that nothing was recorded.
[[nodiscard]] Result<RecordOutcome> record_attached(const RecordOptions& options, const Attachment& attachment);

/// How the command is attached to, by its process id.
using CommandAttachment = std::function<Attachment(pid_t pid)>;

/// As record(), with nothing of ours in the command: it is attached to from its first instruction on, or after the
/// attachment's delay.
[[nodiscard]] Result<RecordOutcome> record_from_outside(const RecordOptions& options,
                                                        const CommandAttachment& attachment);

/// Becomes the command, unrecorded, with the limits that were given for it. Returns why it could not.
[[nodiscard]] Error execute_unrecorded(const std::vector<std::string>& command);

}  // namespace crosstalk::daemon
