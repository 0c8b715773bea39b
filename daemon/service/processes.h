// SPDX-License-Identifier: Apache-2.0
// The processes of this machine, as /proc shows them, and which of them belong to a service.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/service/configuration.h"

namespace crosstalk::service {

/// Facts of a process. Facts that this user may not read are empty.
struct Process {
  pid_t pid = 0, parent = 0;
  uid_t owner = 0;         // process_owner(): root if it has other rights than its user
  std::string executable;  // its path
  std::string command;     // the arguments, joined by spaces: the first 4096 bytes, since a process chooses how many
  std::string cgroup;      // path in the unified hierarchy, or else in that of systemd
};

/// Returns nullopt if there is no such process, or it is a kernel thread or a zombie.
[[nodiscard]] std::optional<Process> process_of(pid_t pid);

/// A process that was looked at, with a descriptor that goes on naming it when its pid is used again.
struct HeldProcess {
  Process process;
  UniqueFd pidfd;
};
[[nodiscard]] bool has_ended(const UniqueFd& pidfd);
/// Errors: not_found, as of process_of(); system, if there is no descriptor left.
[[nodiscard]] Result<HeldProcess> hold(pid_t pid);

/// Returns the process's parent, its parent's parent and so on, as of now.
[[nodiscard]] std::vector<pid_t> ancestors_of(pid_t pid);

/// The processes of this machine, which are looked at again and again. Reads new processes at once, and the others
/// about once a minute, since a process may execute another program. Not thread-safe.
class ProcessList {
 public:
  /// Returns all processes with a program, by pid. `now_ns`: CLOCK_MONOTONIC.
  [[nodiscard]] std::vector<Process> look(std::uint64_t now_ns);

 private:
  struct Known {
    std::optional<Process> process;  // nullopt: it has no program
    std::uint64_t due_ns = 0;        // to be read again
  };
  std::map<pid_t, Known> known_;
};

/// Returns the path of the group: of the unified hierarchy (0::PATH), or else of systemd's. `text`: /proc/PID/cgroup.
[[nodiscard]] std::string cgroup_in(const std::string& text);

[[nodiscard]] bool belongs_to(const Process& process, const Match& match);

/// Returns the service's processes. If `children`, without those that descend from another one of them, since they are
/// observed with that one. `all`: by pid.
[[nodiscard]] std::vector<pid_t> processes_of(const std::vector<Process>& all, const Match& match, bool children);

}  // namespace crosstalk::service
