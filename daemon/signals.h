// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/time.h>

#include <array>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace crosstalk::daemon {

/// For whom signals are taken.
enum class SignalsFor {
  session,  // those that end or tell programs; job control is as for any program
  command,  // all that somebody may have meant for the command that this process stands for, and its timers
};

/// While it lives, the signals that processes send each other (SIGINT, SIGTERM, SIGUSR1, the real-time ones, ...) do
/// not end this process but wait here to be taken. SIGPIPE is ignored (a failed write says enough) and
/// SIGCHLD has its default meaning. An interval timer that this process was executed with is the command's, and does
/// not run here. Restores what was when it goes. Made and destroyed by the only thread that cares for signals.
class SignalWatch {
 public:
  [[nodiscard]] static Result<SignalWatch> begin(SignalsFor whom = SignalsFor::command);
  SignalWatch(SignalWatch&& other) noexcept;
  SignalWatch& operator=(SignalWatch&&) = delete;
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  /// Readable when a signal waits.
  [[nodiscard]] int fd() const { return fd_.get(); }

  struct Arrival {
    int signal = 0;
    int code = 0;              // si_code: SI_USER, SI_QUEUE, ... of senders; SI_KERNEL, SI_TIMER, ...
    pid_t sender = 0;          // 0: the kernel
    uid_t user = 0;            // the sender's
    sigval value{};            // of SI_QUEUE
    bool by_observed = false;  // the sender is the command, or one of its descendants; left to who knows them
  };
  /// The next that waits; nothing when there is none.
  [[nodiscard]] std::optional<Arrival> take() const;

  /// Gives the calling process the signal state from before begin(). Async-signal-safe: for a fork's child.
  void restore() const;
  /// Likewise the interval timers, with what is left of them.
  void restore_timers() const;

 private:
  SignalWatch() = default;

  UniqueFd fd_;
  bool active_ = false;
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  struct sigaction old_child_ {};
  std::array<itimerval, 3> timers_{};  // ITIMER_REAL, _VIRTUAL and _PROF, as far as they came by exec
};

}  // namespace crosstalk::daemon
