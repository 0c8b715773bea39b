// SPDX-License-Identifier: Apache-2.0
// The user who may observe a process, by the kernel's own rule for ptrace(2).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "base/proc_fields.h"

namespace crosstalk {

/// True if the process has capabilities that count outside of a user namespace of its own. `status`: its
/// /proc/PID/status.
[[nodiscard]] inline bool has_capabilities(const std::string& folder, const std::string& status) {
  if (proc_field(status, "CapPrm").value_or("").find_first_not_of('0') == std::string_view::npos) {
    return false;
  }
  struct stat theirs {};
  struct stat ours {};
  return ::stat((folder + "/ns/user").c_str(), &theirs) != 0 || ::stat("/proc/self/ns/user", &ours) != 0 ||
         theirs.st_ino == ours.st_ino;
}

/// Returns the user all of whose rights the process has, and no others: root for a process that has changed its user
/// ids, that is not dumpable (prctl(2)), as after the execution of a file with set-user-id bit or capabilities, or that
/// has capabilities. nullopt: there is no such process.
[[nodiscard]] inline std::optional<uid_t> process_owner(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const std::string status = file_text(folder + "/status");
  // The owner of the directory /proc/PID is the effective user, whether the process is dumpable or not.
  struct stat of {};
  if (::stat((folder + "/stat").c_str(), &of) != 0 || status.empty()) {
    return std::nullopt;
  }
  std::istringstream ids{std::string(proc_field(status, "Uid").value_or(""))};
  std::set<uid_t> users{of.st_uid};
  for (uid_t user = 0; ids >> user;) {
    users.insert(user);
  }
  return users.size() == 1 && !has_capabilities(folder, status) ? *users.begin() : 0;
}

}  // namespace crosstalk
