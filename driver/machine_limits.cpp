// SPDX-License-Identifier: Apache-2.0
#include "driver/machine_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace crosstalk::driver {
namespace {

std::string to_see_it_all(const std::string& remedy) { return remedy.empty() ? "" : "; to see it: " + remedy; }

/// Of watchpoints that may not be armed at all, or not inside of a target.
profile::MessageRow nothing_watched(const collectors::Probe& probe) {
  const profile::WatchTrial& trial = probe.watch_trial;
  const std::string remedy = probe.watchpoints_allowed ? "record with --observer" : trial.remedy;
  return {"watchpoints_unavailable", "no watchpoints (" + trial.why +
                                         "): nothing is watched, so communication between threads can not be seen" +
                                         to_see_it_all(remedy)};
}

/// Of watchpoints that some accesses escape.
profile::MessageRow partly_watched(std::uint32_t silent, const profile::WatchTrial& trial) {
  return {"watchpoints_partly", trial.why + "; communication by " + profile::accesses_in_words(silent) +
                                    " may not be seen" + to_see_it_all(trial.remedy)};
}

}  // namespace

const collectors::Facility* facility_of(const collectors::Probe& probe, const std::string& name) {
  const auto found = std::find_if(probe.facilities.begin(), probe.facilities.end(),
                                  [&](const collectors::Facility& f) { return f.name == name; });
  return found == probe.facilities.end() ? nullptr : &*found;
}

std::vector<profile::MessageRow> limits_of(const profile::SessionConfig& wanted, const collectors::Probe& probe,
                                           bool from_outside) {
  const auto* const clock = facility_of(probe, "perf task-clock");
  if (!probe.perf_allowed && clock != nullptr) {
    return {{"perf_forbidden", "perf events are forbidden (" + clock->found +
                                   "), so a POSIX timer samples and no watchpoint can see communication" +
                                   (clock->remedy.empty() ? "" : "; to allow them: " + clock->remedy)}};
  }
  if (!(from_outside ? probe.watchpoints_allowed : probe.watchpoints_inside)) {
    return {nothing_watched(probe)};
  }
  std::vector<profile::MessageRow> limits;
  if (const std::uint32_t silent = probe.watch_trial.silent & ~profile::trial_sigtrap; silent != 0) {
    limits.push_back(partly_watched(silent, probe.watch_trial));
  }
  if (probe.debug_registers < wanted.watchpoints) {
    limits.push_back({"debug_registers_in_use",
                      fmt::format("only {} of 4 debug registers are free, so less communication is seen; a debugger "
                                  "or another profiler may hold the others",
                                  probe.debug_registers)});
  }
  return limits;
}

}  // namespace crosstalk::driver
