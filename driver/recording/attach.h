// SPDX-License-Identifier: Apache-2.0
// Targets that the observer watches from another process: running ones (`crosstalk record -p`) or a command. Wraps the
// observer as the session's collector.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/pmu/counter_groups.h"
#include "collectors/pmu/memory_events.h"
#include "daemon/attached_processes.h"
#include "daemon/session.h"
#include "driver/options/record_options.h"
#include "profile/model.h"

namespace crosstalk::driver {

struct AttachedTarget {
  daemon::Attachment attachment;
  std::string command;                        // the processes' command lines, as a shell would run them side by side
  std::vector<profile::MessageRow> warnings;  // facts that are unknown from outside
};

/// Returns the command line of a running process in shell syntax; if it has none, its executable or its number.
[[nodiscard]] std::string command_of(pid_t pid);

/// The kernel's facilities for watching another process.
struct OutsideMeans {
  std::uint32_t registers = 0;                     // debug registers that each thread may use
  std::vector<collectors::MemoryEvent> memory;     // events that sample accesses, beside the clocks
  std::vector<collectors::CounterGroup> counters;  // that are read of each thread
};

/// Checks that every process can be watched from outside; fails if one of them cannot.
[[nodiscard]] Result<AttachedTarget> attach_to(const RecordRequest& request, const OutsideMeans& means);

/// Returns the attachment for programs that a preloaded command starts and the library cannot be loaded into.
[[nodiscard]] daemon::Attachment watch_beside_library(const RecordRequest& request, const OutsideMeans& means);

struct WatchedCommand {
  daemon::CommandAttachment attachment;
  profile::MessageRow warning;  // facts that are unknown from outside
};

/// `what`: words that come before "watched from outside".
[[nodiscard]] WatchedCommand watch_command(const RecordRequest& request, const std::string& what,
                                           const OutsideMeans& means);

}  // namespace crosstalk::driver
