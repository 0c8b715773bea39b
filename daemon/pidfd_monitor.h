// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"

namespace crosstalk::daemon {

/// Knows which of the attached processes are still there. A pid is held by a pidfd, so that its reuse by
/// another process is not taken for life. Not thread-safe.
class PidfdMonitor {
 public:
  /// Begins to watch `pid`, unless it is watched.
  void watch(pid_t pid);
  /// The processes that have ended since the last call; they are no longer watched.
  [[nodiscard]] std::vector<pid_t> take_ended();
  /// True for a pid that could not be found when it was first seen: it was over already, or it is a process
  /// of another pid namespace, whose pid says nothing here.
  [[nodiscard]] bool unknown(pid_t pid) const;
  void forget(pid_t pid) { processes_.erase(pid); }
  /// Watched processes known to live.
  [[nodiscard]] std::vector<pid_t> alive() const;

  /// True when thread `tid` of process `pid` is known to be gone.
  [[nodiscard]] static bool thread_gone(pid_t pid, pid_t tid);

 private:
  struct Process {
    UniqueFd fd;
    bool unknown = false;
    bool polled = false;  // no pidfd to be had: asked with kill(pid, 0)
  };
  std::unordered_map<pid_t, Process> processes_;
};

}  // namespace crosstalk::daemon
