// SPDX-License-Identifier: Apache-2.0
#include "daemon/pidfd_monitor.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace crosstalk::daemon {

void PidfdMonitor::watch(pid_t pid) {
  if (pid <= 0 || processes_.contains(pid)) {
    return;
  }
  Process process;
  process.fd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.fd.valid()) {
    process.unknown = errno == ESRCH || errno == EINVAL;
    process.polled = !process.unknown;
  }
  processes_.emplace(pid, std::move(process));
}

std::vector<pid_t> PidfdMonitor::take_ended() {
  std::vector<pollfd> polled;
  std::vector<pid_t> pids;
  std::vector<pid_t> ended;
  for (const auto& [pid, process] : processes_) {
    if (process.fd.valid()) {
      polled.push_back({process.fd.get(), POLLIN, 0});
      pids.push_back(pid);
    } else if (process.polled && ::kill(pid, 0) != 0 && errno == ESRCH) {
      ended.push_back(pid);
    }
  }
  if (!polled.empty() && ::poll(polled.data(), polled.size(), 0) > 0) {
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) {
        ended.push_back(pids[i]);
      }
    }
  }
  for (const pid_t pid : ended) {
    processes_.erase(pid);
  }
  return ended;
}

bool PidfdMonitor::unknown(pid_t pid) const {
  const auto found = processes_.find(pid);
  return found != processes_.end() && found->second.unknown;
}

std::vector<pid_t> PidfdMonitor::alive() const {
  std::vector<pid_t> pids;
  for (const auto& [pid, process] : processes_) {
    if (!process.unknown) {
      pids.push_back(pid);
    }
  }
  return pids;
}

bool PidfdMonitor::thread_gone(pid_t pid, pid_t tid) {
  return pid > 0 && tid > 0 && ::syscall(SYS_tgkill, pid, tid, 0) != 0 && errno == ESRCH;
}

}  // namespace crosstalk::daemon
