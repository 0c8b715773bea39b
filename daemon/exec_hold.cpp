// SPDX-License-Identifier: Apache-2.0
#include "daemon/exec_hold.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>

namespace crosstalk::daemon {
namespace {

constexpr int event_shift = 8;

void* as_data(std::uintptr_t value) { return reinterpret_cast<void*>(value); }  // NOLINT: ptrace's interface

}  // namespace

std::optional<ExecHold> ExecHold::seize(pid_t pid) {
  if (::ptrace(PTRACE_SEIZE, pid, nullptr, as_data(PTRACE_O_TRACEEXEC)) != 0) {
    return std::nullopt;
  }
  return ExecHold(pid);
}

ExecHold::~ExecHold() {
  if (pid_ != 0) {
    ::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
  }
}

bool ExecHold::await() const {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOWAIT | __WALL) != 0) {
      if (errno != EINTR) {
        return false;
      }
      continue;
    }
    if (info.si_code != CLD_TRAPPED) {
      return false;
    }
    const int event = info.si_status >> event_shift;
    if (event == PTRACE_EVENT_EXEC) {
      return true;
    }
    if (event == PTRACE_EVENT_STOP) {  // a group stop: stay stopped until a SIGCONT
      ::ptrace(PTRACE_LISTEN, pid_, nullptr, nullptr);
    } else {
      ::ptrace(PTRACE_CONT, pid_, nullptr, as_data(static_cast<std::uintptr_t>(info.si_status)));
    }
  }
}

}  // namespace crosstalk::daemon
