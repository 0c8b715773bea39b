// SPDX-License-Identifier: Apache-2.0
#include "daemon/signals.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace crosstalk::daemon {

namespace {

sigset_t taken_signals() {
  sigset_t taken;
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

bool is_of_terminal(int signal) { return signal == SIGINT || signal == SIGQUIT || signal == SIGHUP; }

}  // namespace

Result<SignalWatch> SignalWatch::begin() {
  SignalWatch watch;
  const sigset_t taken = taken_signals();
  // An ignored one (nohup) stays ignored, here and in the command.
  watch.fd_.reset(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!watch.fd_.valid() || ::pthread_sigmask(SIG_BLOCK, &taken, &watch.old_mask_) != 0) {
    return fail(ErrorCode::system, std::string("cannot wait for signals: ") + std::strerror(errno));
  }
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &watch.old_pipe_);
  ::sigaction(SIGXFSZ, &action, &watch.old_file_size_);
  action.sa_handler = SIG_DFL;  // an inherited SIG_IGN would make the kernel forget the command's status
  ::sigaction(SIGCHLD, &action, &watch.old_child_);
  watch.active_ = true;
  return watch;
}

SignalWatch::SignalWatch(SignalWatch&& other) noexcept
    : fd_(std::move(other.fd_)),
      active_(std::exchange(other.active_, false)),
      old_mask_(other.old_mask_),
      old_pipe_(other.old_pipe_),
      old_file_size_(other.old_file_size_),
      old_child_(other.old_child_) {}

SignalWatch::~SignalWatch() {
  if (active_) {
    while (take()) {
      // They were heeded or came too late to be: they must not end this process now.
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
  const auto signal = static_cast<int>(info.ssi_signo);
  const bool by_kernel = info.ssi_code == SI_KERNEL;
  return Arrival{signal, by_kernel && is_of_terminal(signal), by_kernel ? 0 : static_cast<pid_t>(info.ssi_pid)};
}

void SignalWatch::restore() const {
  ::sigaction(SIGPIPE, &old_pipe_, nullptr);
  ::sigaction(SIGXFSZ, &old_file_size_, nullptr);
  ::sigaction(SIGCHLD, &old_child_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

}  // namespace crosstalk::daemon
