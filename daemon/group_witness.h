// SPDX-License-Identifier: Apache-2.0
// Whom a signal was sent to: this process alone, or its whole group. The kernel does not say so. A second process of
// the group does that has nothing to do but to note which signals reach it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/unique_fd.h"

namespace crosstalk::daemon {

/// When each signal reached the witness last, CLOCK_MONOTONIC ns, by its number; 0: never.
using WitnessedTimes = std::array<std::uint64_t, 65>;

/// Ends with its owner, also when that is killed. Not thread-safe.
class GroupWitness {
 public:
  /// A child of the calling process. Nothing: no process can be made.
  [[nodiscard]] static std::optional<GroupWitness> start();
  GroupWitness(GroupWitness&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), channel_(std::move(other.channel_)) {}
  GroupWitness& operator=(GroupWitness&&) = delete;
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;
  ~GroupWitness();

  /// What has reached it. A signal to the group that has reached this process has reached the witness by then. Nothing:
  /// it does not answer.
  [[nodiscard]] std::optional<WitnessedTimes> ask() const;

 private:
  GroupWitness(pid_t pid, UniqueFd channel) : pid_(pid), channel_(std::move(channel)) {}

  pid_t pid_;
  UniqueFd channel_;
};

}  // namespace crosstalk::daemon
