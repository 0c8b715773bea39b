// SPDX-License-Identifier: Apache-2.0
// What a session was told to observe, apart from how it records: the command that it has launched, or running processes
// that it has attached to.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/attached_processes.h"
#include "daemon/launch.h"

namespace crosstalk::daemon {

/// The command, or the attachment. Not thread-safe.
class Target {
 public:
  /// A launched command: its end is waited for, its status passed on.
  explicit Target(Child child) : target_(std::move(child)) {}
  /// Running processes: the session ends with them, or before.
  explicit Target(AttachedProcesses processes) : target_(std::move(processes)) {}

  /// The command's process; nothing of an attachment.
  [[nodiscard]] std::optional<pid_t> launched() const;
  /// Readable when its end can be seen; -1 once it was seen, or where the kernel has no pidfd.
  [[nodiscard]] int fd() const;
  /// Looks whether it has ended; true when it had not when last asked.
  bool just_ended(std::uint64_t now_ns);

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] std::uint64_t ended_ns() const { return ended_ns_; }
  /// As a shell has it: 128+N for signal N. Nobody but its parent is told that of a process.
  [[nodiscard]] std::optional<int> status() const { return status_; }
  /// The signal that it has died of, if it has. As status().
  [[nodiscard]] std::optional<int> death_signal() const;
  /// The signal that has stopped it since the last call, if one has; just_ended() finds out.
  [[nodiscard]] std::optional<int> take_stop();
  /// What somebody told the recorder and meant for it; a signal that ends programs ends an attachment.
  void send(const SignalWatch::Arrival& arrival);
  /// The session is not to wait for an attachment's end.
  void leave();
  /// What an outside collector has to say, once it has ended.
  [[nodiscard]] std::vector<profile::MessageRow> remarks() const;
  /// Processes that a collector outside could not observe, and why; once it is over.
  [[nodiscard]] std::vector<profile::ProcessRow> unobserved() const;

 private:
  std::variant<Child, AttachedProcesses> target_;
  std::optional<int> status_;
  bool ended_ = false;
  std::uint64_t ended_ns_ = 0;
};

/// The session goes on as long as one of them does.
using Targets = std::vector<Target>;

[[nodiscard]] bool all_ended(const Targets& targets);
/// When the last one ended.
[[nodiscard]] std::uint64_t last_end_ns(const Targets& targets);

}  // namespace crosstalk::daemon
