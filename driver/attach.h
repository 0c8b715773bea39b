// SPDX-License-Identifier: Apache-2.0
// What a session is to watch from outside, running processes (`crosstalk record -p`) or a command, and the observer as
// the session's collector.
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
#include "driver/record_options.h"
#include "profile/model.h"

namespace crosstalk::driver {

struct AttachedTarget {
  daemon::Attachment attachment;
  std::string command;                        // the processes' command lines, as a shell would run them side by side
  std::vector<profile::MessageRow> warnings;  // what cannot be known of them from outside
};

/// The command line of a running process, as a shell has it; without one its executable, or its number.
[[nodiscard]] std::string command_of(pid_t pid);

/// What the kernel gives those who watch from outside.
struct OutsideMeans {
  std::uint32_t registers = 0;                     // debug registers that a thread may have
  std::vector<collectors::MemoryEvent> memory;     // events that sample accesses, beside the clocks
  std::vector<collectors::CounterGroup> counters;  // that are read of each thread
};

/// Refuses what cannot be watched from outside: where one of several cannot, all are.
[[nodiscard]] Result<AttachedTarget> attach_to(const RecordRequest& request, const OutsideMeans& means);

struct WatchedCommand {
  daemon::CommandAttachment attachment;
  profile::MessageRow warning;  // what cannot be known of it from outside
};

/// `what`: words that "watched from outside" can follow.
[[nodiscard]] WatchedCommand watch_command(const RecordRequest& request, const std::string& what,
                                           const OutsideMeans& means);

}  // namespace crosstalk::driver
