// SPDX-License-Identifier: Apache-2.0
// Holds a child at the moment when it has become another program and executed nothing of it yet, so that it can be
// attached to from its first instruction on. Only ptrace stops a process there. The child is traced from before its
// exec until it is let go, and cannot see afterwards that it was.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

namespace crosstalk::daemon {

/// Used by the thread that has made it, as ptrace demands. Lets the child go when it is destroyed.
class ExecHold {
 public:
  /// Of a child of ours that has not called exec yet. Nothing: it must not be traced here (seccomp, Yama).
  [[nodiscard]] static std::optional<ExecHold> seize(pid_t pid);
  ExecHold(ExecHold&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  ExecHold& operator=(ExecHold&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ExecHold(const ExecHold&) = delete;
  ExecHold& operator=(const ExecHold&) = delete;
  ~ExecHold();

  /// Waits until the child is held behind its exec; false: it has ended instead, and is left to be waited for. Signals
  /// that come meanwhile reach it.
  bool await() const;

 private:
  explicit ExecHold(pid_t pid) : pid_(pid) {}
  pid_t pid_;  // 0: nobody is held
};

}  // namespace crosstalk::daemon
