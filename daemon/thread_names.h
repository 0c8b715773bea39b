// SPDX-License-Identifier: Apache-2.0
// What the kernel calls threads now. They are renamed while they run, by themselves or by others, and looking at that
// from outside costs the target nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace crosstalk::daemon {

/// The name of thread `tid` of process `pid`; nothing when there is no such thread.
[[nodiscard]] std::optional<std::string> thread_name(pid_t pid, pid_t tid);

/// The file that process `pid` executes, as /proc/PID/exe has it; empty when that is not to be known.
[[nodiscard]] std::string executable_of(pid_t pid);

/// When a thread is looked at, at its name above all: soon after it was first seen, as most threads are named at their
/// start; then when the time since has doubled; and from then on once a second.
class NameSchedule {
 public:
  NameSchedule() = default;
  explicit NameSchedule(std::uint64_t begin_ns) : begin_ns_(begin_ns), due_ns_(begin_ns) {}
  /// True when it is time for a look, which is then taken to be made.
  [[nodiscard]] bool due(std::uint64_t now_ns);

 private:
  std::uint64_t begin_ns_ = 0, due_ns_ = 0;
};

}  // namespace crosstalk::daemon
