// SPDX-License-Identifier: Apache-2.0
// Holds a child right after its exec, before the program's first instruction, so that the recorder can attach there.
// Only ptrace can stop a process at this point. The child is traced from before its exec until its release, and cannot
// detect that afterwards.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

namespace crosstalk::daemon {

/// Releases the child in the destructor. Only for the thread that created it, as ptrace demands.
class ExecHold {
 public:
  /// Seizes a child of ours that has not called exec yet. nullopt: tracing is forbidden here (seccomp, Yama).
  [[nodiscard]] static std::optional<ExecHold> seize(pid_t pid);
  ExecHold(ExecHold&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  ExecHold& operator=(ExecHold&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ExecHold(const ExecHold&) = delete;
  ExecHold& operator=(const ExecHold&) = delete;
  ~ExecHold();

  /// Waits until the child is held after its exec. False: it has ended instead, and is left to be waited for. Passes on
  /// signals that arrive meanwhile.
  bool await() const;

 private:
  explicit ExecHold(pid_t pid) : pid_(pid) {}
  pid_t pid_;  // 0: no child is held
};

}  // namespace crosstalk::daemon
