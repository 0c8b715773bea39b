// SPDX-License-Identifier: Apache-2.0
// What a session is to watch from outside, running processes (`crosstalk record -p`) or a command, and the observer as
// the session's collector.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/attached_processes.h"
#include "daemon/session.h"
#include "driver/record_options.h"
#include "profile/model.h"

namespace crosstalk::driver {

struct AttachedTarget {
  daemon::Attachment attachment;
  std::string command;                        // the processes' command lines, as a shell would run them side by side
  std::vector<profile::MessageRow> warnings;  // what can not be known of them from outside
};

/// The command line of a running process, as a shell has it; without one its executable, or its number.
[[nodiscard]] std::string command_of(pid_t pid);

/// Refuses what can not be watched from outside: where one of several can not, all are. `registers`: debug registers
/// that a thread may have.
[[nodiscard]] Result<AttachedTarget> attach_to(const RecordRequest& request, std::uint32_t registers);

struct WatchedCommand {
  daemon::CommandAttachment attachment;
  profile::MessageRow warning;  // what can not be known of it from outside
};

/// `what`: words that "watched from outside" can follow.
[[nodiscard]] WatchedCommand watch_command(const RecordRequest& request, const std::string& what,
                                           std::uint32_t registers);

}  // namespace crosstalk::driver
