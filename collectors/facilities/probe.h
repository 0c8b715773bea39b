// SPDX-License-Identifier: Apache-2.0
// Finds what this machine and this user's rights allow: asks the kernel instead of guessing. Runs in the recorder,
// before a target starts, and in `crosstalk doctor`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/facility.h"
#include "collectors/observing_costs.h"
#include "profile/arena.h"
#include "profile/watch_trial.h"

namespace crosstalk::collectors {

struct Probe {
  std::vector<Facility> facilities;
  bool perf_allowed = false;
  profile::WatchTrial watch_trial;    // the result of trying watchpoints just now
  bool watchpoints_allowed = false;   // they passed the trial and may be armed
  bool watchpoints_inside = false;    // the same of a collector inside of a target, which is told by signals
  std::uint32_t debug_registers = 0;  // free now, 0..4; 0 if nothing may be armed
  int paranoid = -1;                  // /proc/sys/kernel/perf_event_paranoid; -1: not there
};

[[nodiscard]] Probe probe();
/// Returns what this machine's performance monitoring units give, as tested just now.
[[nodiscard]] std::vector<Facility> units_here();
/// Returns the facility; nullptr: the probe did not ask for it.
[[nodiscard]] const Facility* facility_of(const Probe& probe, const std::string& name);
/// Updates the rest of the probe from `watch_trial`.
void take_verdict(Probe& probe);
[[nodiscard]] Facility watchpoint_facility(const profile::WatchTrial& trial);
/// Measures signal, trap and switch costs on this machine (some 20 ms), unless they are `known`, and fills the
/// calibrated and probed fields of `config`. Never fails: a cost that cannot be measured keeps its default. Also
/// corrects `probe` if watchpoints fired in the self-test and fail afterwards; checks this in any case. Returns the
/// measured or known costs.
ObservingCosts calibrate(Probe& probe, profile::SessionConfig& config,
                         const std::optional<ObservingCosts>& known = std::nullopt);
/// Corrects the self-test's verdict if `accesses` to a watched word raised too few `signals`.
void doubt_signals(std::uint32_t accesses, std::uint32_t signals, Probe& probe);

/// A command that can be executed here.
struct JudgedCommand {
  std::string path;
  /// The reason why no library can be preloaded into it, in words that follow its path; empty: one can.
  std::string obstacle;
  bool privileged = false;  // it gets rights that this user does not have
};

/// Refuses, in one line, a command that cannot be observed in any way: missing, not executable, of another processor,
/// of 32 bits, not readable. Scripts are judged by their interpreter.
[[nodiscard]] Result<JudgedCommand> check_command(const std::string& command);

}  // namespace crosstalk::collectors
