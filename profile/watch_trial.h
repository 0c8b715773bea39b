// SPDX-License-Identifier: Apache-2.0
// The recorder's self-test of the machine's watchpoints, as a profile stores its result.
// collectors/facilities/watchpoint_trial.h runs the test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crosstalk::profile {

enum class TrialVerdict : std::uint32_t {
  unknown = 0,     // of a profile without a self-test: older, or imported
  fires = 1,       // every access that was to be reported was
  partly = 2,      // accesses of the kinds `silent` were not, or not all
  never = 3,       // watchpoints can be opened, and report nothing
  not_opened = 4,  // the kernel opens none
  untestable = 5,  // the test came to no answer
};

/// Kinds of access that the self-test makes. `WatchTrial::silent` is a sum of those that did not trap.
enum TrialAccess : std::uint32_t {
  trial_store = 1,
  trial_load = 2,
  trial_locked = 4,        // an update by a locked instruction
  trial_other_thread = 8,  // of a thread that another one has set the watchpoint for
  trial_sigtrap = 16,      // told by a signal, as the collector inside of a target asks for it
};
inline constexpr std::uint32_t trial_all = 31;
/// The names in JSON reports: "store", "load", "locked_update", "other_thread", "sigtrap".
[[nodiscard]] std::vector<std::string> names_of_accesses(std::uint32_t accesses);
/// The same in words: "loads and locked updates".
[[nodiscard]] std::string accesses_in_words(std::uint32_t accesses);

/// "fires", "partly", "never", "not_opened", "untestable"; empty: unknown, or of a damaged profile.
[[nodiscard]] std::string verdict_name(TrialVerdict verdict);

struct WatchTrial {
  TrialVerdict verdict = TrialVerdict::unknown;
  std::uint32_t silent = 0;     // TrialAccess: what did not trap
  std::uint32_t registers = 0;  // debug registers that could be opened
  std::string why;              // of all but `fires`: what was found, and the cause where it can be told
  std::string remedy;           // a remedy; empty: none is known
};

/// True if watches may be armed. Watchpoints that do not report other threads show no communication, and a target might
/// be killed as the test was.
[[nodiscard]] inline bool is_worth_arming(const WatchTrial& trial) {
  constexpr std::uint32_t all_kinds = trial_store | trial_load | trial_locked;
  return trial.verdict == TrialVerdict::fires || trial.verdict == TrialVerdict::unknown ||
         (trial.verdict == TrialVerdict::partly && (trial.silent & trial_other_thread) == 0 &&
          (trial.silent & all_kinds) != all_kinds);
}

}  // namespace crosstalk::profile
