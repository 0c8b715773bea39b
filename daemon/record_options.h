// SPDX-License-Identifier: Apache-2.0
// Input and result of a recording session.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/attached_processes.h"
#include "profile/arena.h"
#include "profile/counter_reading.h"
#include "profile/model.h"

namespace crosstalk::daemon {

struct Progress {
  double elapsed_s = 0;
  std::uint64_t samples = 0, traps = 0, watches = 0;
  double overhead = 0;  // of the threads' CPU time
  double recorder = 0;  // CPU time of the recorder itself, of the threads'
  std::uint32_t threads = 0;
};

struct RecordOptions {
  std::string output = "crosstalk.db";  // already expanded
  std::uint64_t switch_ns = 0;          // a new profile begins each time so much has passed; 0: there is one
  std::size_t switch_most = 0;          // profiles to keep of those; 0: all
  std::vector<std::string> command;     // argv of the command that is launched; empty: none is
  std::string command_text;             // the report's name for the target; empty: as `command`
  bool from_outside = false;            // an outside collector reports the targets' ends
  profile::SessionConfig config;        // calibrated and probed by the caller
  profile::WatchTrial watch_trial;      // made by the caller
  profile::CoreTimes core;              // measured by the caller
  /// Measures again when the session ends, while the processor still runs at the program's speed; may be empty.
  std::function<profile::CoreTimes(const profile::CoreTimes& before)> core_at_end;
  std::string machine;                    // text of this machine's file; empty: it was not measured
  std::string method_choice;              // why this method was chosen (config.method)
  std::string source_name;                // as the report shows it
  std::string source_choice;              // why this source was chosen
  std::vector<profile::EventRow> events;  // events beside the clocks; numbered from 1 on
  profile::MemorySampling memory;         // the ones of them that targets open themselves
  /// Returns the final remarks on the samples of `memory`; may be empty.
  std::function<std::vector<profile::MessageRow>(const profile::MemoryCounts&)> remarks_on_memory;
  std::string collector;  // path of libcrosstalk.so
  /// Watches programs that the command starts and the library cannot be loaded into; it begins without a process. It
  /// has no `attach`: they go unobserved, and `no_substitute` says why nothing can watch them.
  Attachment substitute;
  std::string no_substitute;
  bool recorded_itself = false;                   // by another recorder, which also has the command
  std::vector<profile::MessageRow> warnings;      // found before the start; written to the profile
  std::vector<profile::MessageRow> remarks;       // the same, but only for the profile
  std::vector<profile::CounterRow> counters;      // counters that are read of threads
  std::function<void(const Progress&)> progress;  // about twice a second; may be empty
  std::function<void(const std::string&)> warn;   // one line each, during the run
};

struct RecordOutcome {
  int exit_status = 0;              // as in a shell: 128+N for signal N
  std::optional<int> death_signal;  // the signal that killed the command, if any
  Progress totals;
  std::string output;                          // the last profile
  std::size_t files_made = 0, files_kept = 0;  // with --switch-output; else 0
  std::string first_output;                    // the oldest of those that were kept
  // Parts of the totals that are in the file, and why the rest is missing; empty: nothing is missing.
  std::uint64_t stored_samples = 0, stored_traps = 0;
  std::string loss;
};

}  // namespace crosstalk::daemon
