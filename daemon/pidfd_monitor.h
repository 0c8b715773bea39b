// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"

namespace crosstalk::daemon {

/// Tracks which of the attached processes are alive. A pidfd holds each pid, so its reuse by another process is not
/// mistaken for life. Not thread-safe.
class PidfdMonitor {
 public:
  /// Watches `pid`, unless it is already watched.
  void watch(pid_t pid);
  /// Returns the processes that have ended since the last call, and stops watching them.
  [[nodiscard]] std::vector<pid_t> take_ended();
  /// True for a pid that was not found when first seen: the process was already over, or it is in another pid
  /// namespace, whose pids mean nothing here.
  [[nodiscard]] bool unknown(pid_t pid) const;
  void forget(pid_t pid) { processes_.erase(pid); }
  /// Returns the watched processes that are known to be alive.
  [[nodiscard]] std::vector<pid_t> alive() const;

  /// True if thread `tid` of process `pid` is known to be gone.
  [[nodiscard]] static bool thread_gone(pid_t pid, pid_t tid);

 private:
  struct Process {
    UniqueFd fd;
    bool unknown = false;
    bool polled = false;  // no pidfd: polled with kill(pid, 0)
  };
  std::unordered_map<pid_t, Process> processes_;
};

}  // namespace crosstalk::daemon
