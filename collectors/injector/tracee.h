// SPDX-License-Identifier: Apache-2.0
// One thread of another process that ptrace(2) has stopped. It stays stopped for as long as the object lives. Then it
// resumes, or executes the call that it was sent to.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/registers.h"
#include "base/result.h"
#include "collectors/injector/call_frame.h"

namespace crosstalk::injector {

/// A thread's present activity, by /proc/PID/task/TID/syscall.
enum class Doing { runs, waits_quietly, other };
/// `waits_quietly`: in a system call that goes on after a stop as if nothing had been. Others end with EINTR.
[[nodiscard]] Doing doing(pid_t pid, pid_t tid);
/// Does the same from the file's text.
[[nodiscard]] Doing doing_by(const std::string& text);

class Tracee {
 public:
  /// Stops a thread, and passes on the signals that come to it meanwhile. Nothing: it cannot be stopped now (it is
  /// gone, or all of the process is stopped). Fails if tracing is refused.
  [[nodiscard]] static Result<std::optional<Tracee>> stop(pid_t pid, pid_t tid);
  Tracee(Tracee&& other) noexcept;
  Tracee& operator=(Tracee&&) = delete;
  Tracee(const Tracee&) = delete;
  Tracee& operator=(const Tracee&) = delete;
  ~Tracee();

  [[nodiscard]] const StoppedThread& thread() const { return thread_; }
  [[nodiscard]] Registers registers() const;
  /// Has the thread make a call and come back by itself, with all signals blocked that can wait. False: nothing of it
  /// was changed.
  [[nodiscard]] bool send(const CallFrame& call);

 private:
  Tracee(pid_t pid, pid_t tid) : pid_(pid), tid_(tid) {}
  [[nodiscard]] bool read();
  void repeat_call();

  pid_t pid_ = 0;
  pid_t tid_ = 0;  // 0: moved from
  bool sent_ = false;
  StoppedThread thread_;
};

}  // namespace crosstalk::injector
