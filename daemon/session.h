// SPDX-License-Identifier: Apache-2.0
// A recording session: makes the arena, starts the command under observation, drains the rings into the
// profile until the command and all observed descendants have ended (or the session is told to stop).
#pragma once

#include "base/result.h"
#include "daemon/attached_processes.h"
#include "daemon/record_options.h"

namespace crosstalk::daemon {

/// Runs the whole session. The command's exit status (128+N when killed by signal N) is in the outcome.
/// An Error means that the command was not started; its code tells why (not_found -> 127,
/// not_executable -> 126, others -> 125).
[[nodiscard]] Result<RecordOutcome> record(const RecordOptions& options);

/// The same of a running process, until it ends, its time is up, or the session is told to stop (SIGINT, SIGTERM, ...).
/// The outcome's status is 0. An Error means that nothing was recorded.
[[nodiscard]] Result<RecordOutcome> record_attached(const RecordOptions& options, const Attachment& attachment);

}  // namespace crosstalk::daemon
