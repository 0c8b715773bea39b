// SPDX-License-Identifier: Apache-2.0
// Tells whether a signal was sent to this process alone or to its whole group, which the kernel does not report. A
// second process in the group notes the signals that reach it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/unique_fd.h"

namespace crosstalk::daemon {

/// CLOCK_MONOTONIC ns of the last arrival at the witness, by signal number; 0: never.
using WitnessedTimes = std::array<std::uint64_t, 65>;

/// Ends with its owner, even if that is killed. Not thread-safe.
class GroupWitness {
 public:
  /// Starts a child of the calling process. nullopt: fork failed.
  [[nodiscard]] static std::optional<GroupWitness> start();
  GroupWitness(GroupWitness&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), channel_(std::move(other.channel_)) {}
  GroupWitness& operator=(GroupWitness&&) = delete;
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;
  ~GroupWitness();

  /// Returns the arrivals so far. A signal to the group that has reached this process has then reached the witness too.
  /// nullopt: it does not answer.
  [[nodiscard]] std::optional<WitnessedTimes> ask() const;

 private:
  GroupWitness(pid_t pid, UniqueFd channel) : pid_(pid), channel_(std::move(channel)) {}

  pid_t pid_;
  UniqueFd channel_;
};

}  // namespace crosstalk::daemon
