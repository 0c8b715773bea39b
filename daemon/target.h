// SPDX-License-Identifier: Apache-2.0
// The observed target, apart from how it is recorded: a launched command, or running processes that the session has
// attached to.
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

/// A command or an attachment. Not thread-safe.
class Target {
 public:
  /// A launched command: the session waits for its end and passes its status on.
  explicit Target(Child child) : target_(std::move(child)) {}
  /// An attachment: the session ends with the processes, or before.
  explicit Target(AttachedProcesses processes) : target_(std::move(processes)) {}

  /// Returns the command's process; nullopt for an attachment.
  [[nodiscard]] std::optional<pid_t> launched() const;
  /// Readable when it ends; -1 after that, or if the kernel has no pidfd.
  [[nodiscard]] int fd() const;
  /// Polls for its end; true if it has ended since the last call.
  bool just_ended(std::uint64_t now_ns);

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] std::uint64_t ended_ns() const { return ended_ns_; }
  /// As in a shell: 128+N for signal N. Only a parent gets this, so an attachment has none.
  [[nodiscard]] std::optional<int> status() const { return status_; }
  /// Returns the signal that killed it, if any. As status().
  [[nodiscard]] std::optional<int> death_signal() const;
  /// Returns the signal that has stopped it since the last call. just_ended() updates it.
  [[nodiscard]] std::optional<int> take_stop();
  /// Forwards a signal that was meant for it; a signal that ends programs ends an attachment.
  void send(const SignalWatch::Arrival& arrival);
  /// Makes the session stop waiting for an attachment's end.
  void leave();
  /// Has an attachment that has begun observe one more process; not_found: it has ended.
  [[nodiscard]] Result<void> take(pid_t pid);
  /// Makes an attachment that takes processes end with the last one.
  void expect_no_more();
  /// Returns the outside collector's messages since the last call.
  [[nodiscard]] std::vector<profile::MessageRow> take_remarks();
  /// Returns the processes that an outside collector could not observe since the last call, and why.
  [[nodiscard]] std::vector<profile::ProcessRow> take_unobserved();
  /// Returns the CPU time so far of an attachment's processes that none of their observed threads has, if known.
  [[nodiscard]] std::optional<std::uint64_t> unobserved_cpu_ns() const;
  /// All that an outside collector saw before this time (CLOCK_MONOTONIC, ns) is in the arena.
  [[nodiscard]] std::uint64_t handled_until_ns() const;

 private:
  std::variant<Child, AttachedProcesses> target_;
  std::optional<int> status_;
  bool ended_ = false;
  std::uint64_t ended_ns_ = 0;
};

/// The session goes on until all of them have ended.
using Targets = std::vector<Target>;

[[nodiscard]] bool all_ended(const Targets& targets);
/// Returns the time of the last end.
[[nodiscard]] std::uint64_t last_end_ns(const Targets& targets);

}  // namespace crosstalk::daemon
