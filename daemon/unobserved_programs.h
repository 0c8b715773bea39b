// SPDX-License-Identifier: Apache-2.0
// The programs that targets executed and that went unobserved: from the arena's notices to messages of the profile.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/row_sink.h"
#include "profile/arena.h"

namespace crosstalk::daemon {

/// A copy of a notice in our own memory.
struct UnobservedProgram {
  profile::Unobserved reason{};
  std::int32_t pid = 0;
  bool withdrawn = false;
  std::uint64_t time_ns = 0;
  std::string detail, program;
};

/// Takes the notices that are ready out of the arena. Those that cannot be true are dropped.
[[nodiscard]] std::vector<UnobservedProgram> take_notices(profile::ArenaHeader& header);

/// Why, and what to do.
[[nodiscard]] std::string reason_of(const UnobservedProgram& program);
/// One line: which program, why, and what to do.
[[nodiscard]] std::string describe(const UnobservedProgram& program);

/// Puts a message for each program that went unobserved; the sink adds up those of one program. What is told of an exec
/// is held back until it is clear that the exec did not fail. Bounded: programs beyond the first few dozen share one
/// line for each reason. Not thread-safe.
class UnobservedPrograms {
 public:
  /// `settled`: told of each that did go unobserved.
  using Settled = std::function<void(const UnobservedProgram& program)>;
  UnobservedPrograms(RowSink& sink, Settled settled) : sink_(&sink), settled_(std::move(settled)) {}

  void take(UnobservedProgram program);
  /// Lets go of what was told before `before_ns` (CLOCK_MONOTONIC).
  void settle(std::uint64_t before_ns);
  void finish() { settle(~std::uint64_t{0}); }

 private:
  void put(const UnobservedProgram& program);

  RowSink* sink_;
  Settled settled_;
  std::vector<UnobservedProgram> pending_;
  std::set<std::string> named_;
};

}  // namespace crosstalk::daemon
