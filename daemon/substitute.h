// SPDX-License-Identifier: Apache-2.0
// Programs that the library cannot be loaded into, which a preloaded command starts: a collector outside watches them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/record_options.h"
#include "daemon/target.h"
#include "daemon/unobserved_programs.h"

namespace crosstalk::daemon {

/// Attaches the collector, one for all such programs, with the first of them, and appends it to the session's targets.
/// Not thread-safe.
class Substitute {
 public:
  /// `options` outlives it.
  explicit Substitute(const RecordOptions& options) : options_(&options) {}

  /// Has the program watched. False: its process does not execute it yet, or nothing can watch it; then
  /// program.unwatched says why. `arena`: its path.
  [[nodiscard]] bool watch(UnobservedProgram& program, const std::string& arena, std::uint64_t now_ns,
                           Targets& targets);
  /// Lets the collector end with the last of these programs.
  void expect_no_more(Targets& targets) const;

 private:
  Result<void> take(pid_t pid, const std::string& arena, std::uint64_t now_ns, Targets& targets);

  const RecordOptions* options_;
  std::optional<std::size_t> place_;  // among the targets; nullopt: not attached yet
};

}  // namespace crosstalk::daemon
