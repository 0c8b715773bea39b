// SPDX-License-Identifier: Apache-2.0
#include "daemon/process_state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace crosstalk::daemon {
namespace {

bool is_stopped(const UniqueFd& file) {
  const std::optional<ProcessState> now = read_process_state(file);
  return now && now->state == 'T';
}

/// Waits until the command continues, then continues the recorder. Runs in its own process, because a stopped process
/// cannot poll.
[[noreturn]] void wake_when_it_goes_on(const UniqueFd& command, pid_t recorder) {
  constexpr timespec interval{0, 20'000'000};
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (::getppid() == recorder && is_stopped(command)) {
    ::nanosleep(&interval, nullptr);
  }
  if (::getppid() == recorder) {
    ::kill(recorder, SIGCONT);
  }
  ::_exit(0);
}

/// Stops this process, even if it blocks the signal. A blocked SIGCONT that continued it is not left pending.
void stop_by(pid_t self, int signal) {
  sigset_t of_stop;
  sigset_t before;
  sigset_t of_going_on;
  sigemptyset(&of_stop);
  sigaddset(&of_stop, signal);
  sigemptyset(&of_going_on);
  sigaddset(&of_going_on, SIGCONT);
  ::pthread_sigmask(SIG_UNBLOCK, &of_stop, &before);
  ::kill(self, signal);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  constexpr timespec at_once{};
  if (sigismember(&before, SIGCONT) == 1) {
    ::sigtimedwait(&of_going_on, nullptr, &at_once);
  }
}

}  // namespace

UniqueFd open_process_state(pid_t pid) {
  return UniqueFd(::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
}

// "PID (NAME) STATE PARENT ...": the name may hold any character, even brackets.
std::optional<ProcessState> read_process_state(const UniqueFd& file) {
  char text[512];
  const ssize_t got = file.valid() ? ::pread(file.get(), static_cast<char*>(text), sizeof text - 1, 0) : -1;
  if (got <= 0) {
    return std::nullopt;
  }
  text[got] = 0;
  const char* at = std::strrchr(static_cast<const char*>(text), ')');
  if (at == nullptr || at[1] != ' ' || at[2] == 0 || at[3] != ' ') {
    return std::nullopt;
  }
  return ProcessState{at[2], static_cast<pid_t>(std::strtol(at + 4, nullptr, 10))};
}

bool descends_from(pid_t pid, pid_t ancestor) {
  constexpr int most_generations = 64;
  for (int i = 0; i < most_generations && pid > 1; ++i) {
    if (pid == ancestor) {
      return true;
    }
    const std::optional<ProcessState> state = read_process_state(open_process_state(pid));
    if (!state) {
      return false;
    }
    pid = state->parent;
  }
  return false;
}

void stop_with(pid_t command, int signal) {
  const UniqueFd file = open_process_state(command);
  if (!is_stopped(file)) {
    return;
  }
  const pid_t self = ::getpid();
  const pid_t waker = ::fork();
  if (waker == 0) {
    wake_when_it_goes_on(file, self);
  }
  if (waker < 0) {
    return;  // not stopping is better than never continuing
  }
  stop_by(self, signal);
  ::kill(waker, SIGKILL);
  ::waitpid(waker, nullptr, 0);
  if (is_stopped(file)) {  // somebody continued this process, so continue the command too
    ::kill(command, SIGCONT);
  }
}

}  // namespace crosstalk::daemon
