// SPDX-License-Identifier: Apache-2.0
// A recording session: makes the arena, starts the command under observation, drains the rings into the
// profile until the command and all observed descendants have ended (or the session is told to stop).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/arena.h"
#include "profile/model.h"

namespace crosstalk::daemon {

struct Progress {
  double elapsed_s = 0;
  std::uint64_t samples = 0, traps = 0, watches = 0;
  double overhead = 0;
  std::uint32_t threads = 0;
};

struct RecordOptions {
  std::string output = "crosstalk.db";            // already expanded
  std::vector<std::string> command;               // argv; never empty
  profile::SessionConfig config;                  // calibrated and probed by the caller
  std::string method_name, source_name;           // as the report shows them
  std::string collector;                          // path of libcrosstalk.so
  std::vector<profile::MessageRow> warnings;      // found before the start; written to the profile
  std::function<void(const Progress&)> progress;  // about twice a second; may be empty
  std::function<void(const std::string&)> warn;   // one line each, during the run
};

struct RecordOutcome {
  int exit_status = 0;
  Progress totals;
  std::string output;
  // What of the totals is in the file, and why the rest is not; empty: everything is.
  std::uint64_t stored_samples = 0, stored_traps = 0;
  std::string loss;
};

/// Runs the whole session. The command's exit status (128+N when killed by signal N) is in the outcome.
/// An Error means that the command was not started; its code tells why (not_found -> 127,
/// not_executable -> 126, others -> 125).
[[nodiscard]] Result<RecordOutcome> record(const RecordOptions& options);

}  // namespace crosstalk::daemon
