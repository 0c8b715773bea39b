// SPDX-License-Identifier: Apache-2.0
// What a session was told to observe, apart from how it records: today the command that it launched, one of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/launch.h"

namespace crosstalk::daemon {

/// One process that a session was told to observe, with all that it starts. Not thread-safe.
class Target {
 public:
  /// A launched command: its end is waited for, its status passed on.
  explicit Target(Child child) : child_(std::move(child)) {}

  [[nodiscard]] pid_t pid() const { return child_.pid(); }
  /// Readable when its end can be seen; -1 once it was seen, or where the kernel has no pidfd.
  [[nodiscard]] int fd() const { return ended() ? -1 : child_.fd(); }
  /// Looks whether it has ended; true when it had not when last asked.
  bool just_ended(std::uint64_t now_ns);

  [[nodiscard]] bool ended() const { return status_.has_value(); }
  [[nodiscard]] std::uint64_t ended_ns() const { return ended_ns_; }
  /// As a shell has it: 128+N for signal N.
  [[nodiscard]] std::optional<int> status() const { return status_; }
  /// The signal that has stopped it since the last call, if one has; just_ended() finds out.
  [[nodiscard]] std::optional<int> take_stop() { return child_.take_stop(); }
  /// What somebody told the recorder and meant for it.
  void send(int signal) const { child_.send(signal); }

 private:
  Child child_;
  std::optional<int> status_;
  std::uint64_t ended_ns_ = 0;
};

/// The session goes on as long as one of them does.
using Targets = std::vector<Target>;

[[nodiscard]] bool all_ended(const Targets& targets);
/// When the last one ended.
[[nodiscard]] std::uint64_t last_end_ns(const Targets& targets);

}  // namespace crosstalk::daemon
