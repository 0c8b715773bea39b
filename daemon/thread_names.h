// SPDX-License-Identifier: Apache-2.0
// Reads threads' names from the kernel. Threads are renamed while they run, and reading from outside costs the target
// nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace crosstalk::daemon {

/// Returns the name of thread `tid` of process `pid`; nullopt if there is no such thread.
[[nodiscard]] std::optional<std::string> thread_name(pid_t pid, pid_t tid);

/// Returns the file that process `pid` executes, from /proc/PID/exe; empty if unreadable.
[[nodiscard]] std::string executable_of(pid_t pid);

/// Schedules looks at a thread, mainly at its name: soon after its first sight, since most threads are named at their
/// start; then each time its age has doubled; and from then on once a second.
class NameSchedule {
 public:
  NameSchedule() = default;
  explicit NameSchedule(std::uint64_t begin_ns) : begin_ns_(begin_ns), due_ns_(begin_ns) {}
  /// True if a look is due; schedules the next one.
  [[nodiscard]] bool due(std::uint64_t now_ns);

 private:
  std::uint64_t begin_ns_ = 0, due_ns_ = 0;
};

}  // namespace crosstalk::daemon
