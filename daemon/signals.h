// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace crosstalk::daemon {

/// While it lives, the signals that processes send each other (SIGINT, SIGTERM, SIGUSR1, the real-time ones, ...) do
/// not end this process but wait here to be taken: one to the command's process group comes to this process, too, or
/// was meant for the command. SIGPIPE and SIGXFSZ are ignored (a failed write says enough) and SIGCHLD has its default
/// meaning. Restores what was when it goes. Made and destroyed by the only thread that cares for signals.
class SignalWatch {
 public:
  [[nodiscard]] static Result<SignalWatch> begin();
  SignalWatch(SignalWatch&& other) noexcept;
  SignalWatch& operator=(SignalWatch&&) = delete;
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  /// Readable when a signal waits.
  [[nodiscard]] int fd() const { return fd_.get(); }

  struct Arrival {
    int signal = 0;
    bool from_terminal = false;  // sent by the kernel to the whole foreground group: the command has it too
    pid_t sender = 0;            // 0: the kernel
  };
  /// The next that waits; nothing when there is none.
  [[nodiscard]] std::optional<Arrival> take() const;

  /// Gives the calling process the signal state from before begin(). Async-signal-safe: for a fork's child.
  void restore() const;

 private:
  SignalWatch() = default;

  UniqueFd fd_;
  bool active_ = false;
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  struct sigaction old_file_size_ {};
  struct sigaction old_child_ {};
};

}  // namespace crosstalk::daemon
