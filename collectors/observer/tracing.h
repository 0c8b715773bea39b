// SPDX-License-Identifier: Apache-2.0
// Detects that a debugger, strace or the like traces a watched process. A debugger sets its watchpoints in the same
// debug registers as we do, and the kernel would refuse them if ours are set: while a debugger is there, we leave the
// registers to it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace crosstalk::observer {

/// The tracers of one process. Not thread-safe.
class Tracing {
 public:
  explicit Tracing(pid_t pid) : pid_(pid) {}

  /// True if the first thread is traced. Asks the kernel at most every tenth of a second.
  bool is_traced(std::uint64_t now_ns);
  /// Notes that a thread is traced by that process.
  void note(pid_t tracer);
  /// Returns the last tracer that was seen, "gdb (process 4711)"; empty: none was.
  [[nodiscard]] const std::string& tracer() const { return tracer_; }

 private:
  pid_t pid_;
  std::uint64_t due_ns_ = 0;
  pid_t now_ = 0;   // 0: none
  pid_t last_ = 0;  // the process that tracer_ names
  std::string tracer_;
};

}  // namespace crosstalk::observer
