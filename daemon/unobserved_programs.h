// SPDX-License-Identifier: Apache-2.0
// Unobserved programs that targets executed: converts the arena's notices to messages of the profile.
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
  std::string unwatched;  // why it was not watched from outside, either; empty: nobody could tell yet
};

/// Takes the ready notices out of the arena. Drops impossible ones.
[[nodiscard]] std::vector<UnobservedProgram> take_notices(profile::ArenaHeader& header);

/// Returns the reason, with a remedy.
[[nodiscard]] std::string reason_of(const UnobservedProgram& program);
/// True if it may be watched from outside.
[[nodiscard]] bool is_watchable(const UnobservedProgram& program);
/// Returns one line: the program, the reason, and a remedy.
[[nodiscard]] std::string describe(const UnobservedProgram& program);
/// The same of one that is watched from outside.
[[nodiscard]] std::string describe_watched(const UnobservedProgram& program);

/// Puts a message for each program that went unobserved; the sink adds up those of one program. Holds a notice of an
/// exec back until the exec is known to have succeeded. Bounded: beyond the first few dozen programs, one line for each
/// reason. Not thread-safe.
class UnobservedPrograms {
 public:
  /// `settled`: called for each program that went unobserved.
  using Settled = std::function<void(const UnobservedProgram& program)>;
  UnobservedPrograms(RowSink& sink, Settled settled) : sink_(&sink), settled_(std::move(settled)) {}

  void take(UnobservedProgram program);
  /// Offers those that are pending and may be watched from outside to `watch`; forgets those for which it returns true.
  void offer(const std::function<bool(UnobservedProgram& program)>& watch);
  /// Settles the notices from before `before_ns` (CLOCK_MONOTONIC).
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
