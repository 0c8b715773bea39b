// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/machine_limits.h"

#include <fmt/format.h>

namespace crosstalk::driver {
namespace {

std::string to_see_it_all(const std::string& remedy) { return remedy.empty() ? "" : "; to see it: " + remedy; }

profile::MessageRow nothing_watched(const MethodChoice& method, const profile::WatchTrial& trial) {
  return {"watchpoints_unavailable", "no watchpoints (" + method.why +
                                         "): nothing is watched, so communication between threads cannot be seen" +
                                         to_see_it_all(trial.remedy)};
}

/// Makes the warning that lines are probed because watchpoints cannot be used inside the target.
profile::MessageRow lines_probed(const MethodChoice& method, const collectors::Probe& probe) {
  return {"lines_probed",
          "no watchpoints (" + method.why +
              "): lines are read twice while a thread stands still. This shows which threads change a "
              "value, but neither how often they do nor stores of the same value" +
              to_see_it_all(probe.watchpoints_allowed && !probe.watchpoints_inside ? "record with --observer" : "")};
}

/// Makes the warning that watchpoints miss some kinds of accesses.
profile::MessageRow partly_watched(std::uint32_t silent, const profile::WatchTrial& trial) {
  return {"watchpoints_partly", trial.why + "; communication by " + profile::accesses_in_words(silent) +
                                    " may not be seen" + to_see_it_all(trial.remedy)};
}

}  // namespace

std::vector<profile::MessageRow> limits_of(const profile::SessionConfig& wanted, const collectors::Probe& probe,
                                           const MethodChoice& method) {
  const auto* const clock = facility_of(probe, "perf task-clock");
  if (!probe.perf_allowed && clock != nullptr) {
    return {{"perf_forbidden",
             "perf events are forbidden (" + clock->found + "), so a POSIX timer samples and " +
                 (method.method == profile::Method::probe ? "lines are probed instead of being watched"
                                                          : "communication between threads cannot be seen") +
                 (clock->remedy.empty() ? "" : "; to allow them: " + clock->remedy)}};
  }
  if (method.method == profile::Method::none) {
    return {nothing_watched(method, probe.watch_trial)};
  }
  if (method.method == profile::Method::probe) {
    return method.asked ? std::vector<profile::MessageRow>() : std::vector{lines_probed(method, probe)};
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
