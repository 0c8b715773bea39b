// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/time.h>

#include <array>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace crosstalk::daemon {

/// The intended receiver of signals.
enum class SignalsFor {
  session,  // signals that end or notify programs; job control works as for any program
  command,  // all signals that may be meant for the command, and its timers
};

/// While it exists, signals from other processes (SIGINT, SIGTERM, SIGUSR1, the real-time ones, ...) queue here instead
/// of ending this process. SIGPIPE is ignored (the write's error is enough) and SIGCHLD is reset to default. An
/// interval timer that was inherited through exec belongs to the command and stops here. The destructor restores the
/// previous state. For the only thread that handles signals.
class SignalWatch {
 public:
  [[nodiscard]] static Result<SignalWatch> begin(SignalsFor whom = SignalsFor::command);
  SignalWatch(SignalWatch&& other) noexcept;
  SignalWatch& operator=(SignalWatch&&) = delete;
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  /// Readable if a signal waits.
  [[nodiscard]] int fd() const { return fd_.get(); }

  struct Arrival {
    int signal = 0;
    int code = 0;              // si_code: SI_USER, SI_QUEUE, ... of senders; SI_KERNEL, SI_TIMER, ...
    pid_t sender = 0;          // 0: the kernel
    uid_t user = 0;            // the sender's
    sigval value{};            // of SI_QUEUE
    bool by_observed = false;  // the sender is the command or a descendant; set by the caller
  };
  /// Returns the next waiting signal; nullopt if there is none.
  [[nodiscard]] std::optional<Arrival> take() const;

  /// Restores the calling process's signal state from before begin(). Async-signal-safe: for a fork's child.
  void restore() const;
  /// Restores the interval timers with their remaining time.
  void restore_timers() const;

 private:
  SignalWatch() = default;

  UniqueFd fd_;
  bool active_ = false;
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  struct sigaction old_child_ {};
  std::array<itimerval, 3> timers_{};  // ITIMER_REAL, _VIRTUAL and _PROF, if inherited through exec
};

}  // namespace crosstalk::daemon
