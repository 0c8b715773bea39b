// SPDX-License-Identifier: Apache-2.0
// Whether a debugger, strace or the like traces a process that is watched. A debugger sets its watchpoints in the same
// debug registers as we do, and would be refused where ours are set: while one is there, they are left to it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace crosstalk::observer {

/// Of one process. Not thread-safe.
class Tracing {
 public:
  explicit Tracing(pid_t pid) : pid_(pid) {}

  /// Is the first thread traced? Asked of the kernel a tenth of a second after the last time at the earliest.
  bool is_traced(std::uint64_t now_ns);
  /// A thread is, by that process.
  void note(pid_t tracer);
  /// The last that was seen, "gdb (process 4711)"; empty: none was.
  [[nodiscard]] const std::string& tracer() const { return tracer_; }

 private:
  pid_t pid_;
  std::uint64_t due_ns_ = 0;
  pid_t now_ = 0;   // 0: none
  pid_t last_ = 0;  // whom tracer_ names
  std::string tracer_;
};

}  // namespace crosstalk::observer
