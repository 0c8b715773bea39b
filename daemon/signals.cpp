// SPDX-License-Identifier: Apache-2.0
#include "daemon/signals.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace crosstalk::daemon {

namespace {

sigset_t taken_signals(SignalsFor whom) {
  sigset_t taken;
  if (whom == SignalsFor::command) {
    sigfillset(&taken);
    for (const int signal : {SIGCHLD, SIGPIPE, SIGXFSZ}) {
      sigdelset(&taken, signal);
    }
    return taken;
  }
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO,
                           SIGPWR, SIGSTKFLT, SIGABRT}) {
    sigaddset(&taken, signal);
  }
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
    sigaddset(&taken, signal);
  }
  return taken;
}

/// False for a timer that was inherited through exec(2): this process has no handler for it. A timer of a library here
/// has one.
bool has_handler(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

std::array<itimerval, 3> take_inherited_timers() {
  constexpr std::array<int, 3> signals{SIGALRM, SIGVTALRM, SIGPROF};  // of ITIMER_REAL, _VIRTUAL, _PROF: 0, 1, 2
  constexpr itimerval none{};
  std::array<itimerval, 3> timers{};
  for (std::size_t which = 0; which < timers.size(); ++which) {
    if (!has_handler(signals[which])) {
      ::setitimer(static_cast<__itimer_which>(which), &none, &timers[which]);
    }
  }
  return timers;
}

}  // namespace

Result<SignalWatch> SignalWatch::begin(SignalsFor whom) {
  SignalWatch watch;
  const sigset_t taken = taken_signals(whom);
  // An ignored signal (nohup) stays ignored, here and in the command.
  watch.fd_.reset(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!watch.fd_.valid() || ::pthread_sigmask(SIG_BLOCK, &taken, &watch.old_mask_) != 0) {
    return fail(ErrorCode::system, std::string("cannot wait for signals: ") + std::strerror(errno));
  }
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &watch.old_pipe_);
  action.sa_handler = SIG_DFL;  // an inherited SIG_IGN would make the kernel drop the command's status
  ::sigaction(SIGCHLD, &action, &watch.old_child_);
  if (whom == SignalsFor::command) {
    watch.timers_ = take_inherited_timers();
  }
  watch.active_ = true;
  return watch;
}

SignalWatch::SignalWatch(SignalWatch&& other) noexcept
    : fd_(std::move(other.fd_)),
      active_(std::exchange(other.active_, false)),
      old_mask_(other.old_mask_),
      old_pipe_(other.old_pipe_),
      old_child_(other.old_child_),
      timers_(other.timers_) {}

SignalWatch::~SignalWatch() {
  if (active_) {
    while (take()) {
      // Drop signals that were handled or came too late, or they would end this process now.
    }
    restore();
  }
}

std::optional<SignalWatch::Arrival> SignalWatch::take() const {
  signalfd_siginfo info{};
  ssize_t got = 0;
  do {
    got = ::read(fd_.get(), &info, sizeof info);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  Arrival arrival;
  arrival.signal = static_cast<int>(info.ssi_signo);
  arrival.code = info.ssi_code;
  arrival.sender = static_cast<pid_t>(info.ssi_pid);
  arrival.user = info.ssi_uid;
  arrival.value.sival_ptr = reinterpret_cast<void*>(info.ssi_ptr);  // NOLINT: the union's pointer or its integer
  return arrival;
}

void SignalWatch::restore() const {
  ::sigaction(SIGPIPE, &old_pipe_, nullptr);
  ::sigaction(SIGCHLD, &old_child_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void SignalWatch::restore_timers() const {
  for (std::size_t which = 0; which < timers_.size(); ++which) {
    const itimerval& timer = timers_[which];
    if (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0) {
      ::setitimer(static_cast<__itimer_which>(which), &timer, nullptr);
    }
  }
}

}  // namespace crosstalk::daemon
