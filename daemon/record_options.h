// SPDX-License-Identifier: Apache-2.0
// What a recording session is told, and what it has to say.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profile/arena.h"
#include "profile/counter_reading.h"
#include "profile/model.h"

namespace crosstalk::daemon {

struct Progress {
  double elapsed_s = 0;
  std::uint64_t samples = 0, traps = 0, watches = 0;
  double overhead = 0;
  std::uint32_t threads = 0;
};

struct RecordOptions {
  std::string output = "crosstalk.db";  // already expanded
  std::vector<std::string> command;     // argv of the command that is launched; empty: none is
  std::string command_text;             // how the report calls what is recorded; empty: as `command`
  bool from_outside = false;            // a collector outside of the targets tells of their ends
  profile::SessionConfig config;        // calibrated and probed by the caller
  profile::WatchTrial watch_trial;      // made by the caller
  profile::CoreTimes core;              // measured by the caller
  /// Measures again when the session ends, while the processor still runs at the program's speed; may be empty.
  std::function<profile::CoreTimes(const profile::CoreTimes& before)> core_at_end;
  std::string machine;                    // text of this machine's file; empty: it was not measured
  std::string method_choice;              // why it is this method (config.method)
  std::string source_name;                // as the report shows it
  std::string source_choice;              // why it is this source
  std::vector<profile::EventRow> events;  // that sample beside the clocks; numbered from 1 on
  profile::MemorySampling memory;         // of them, those that targets open themselves
  /// What is to be said of samples of `memory` in the end; may be empty.
  std::function<std::vector<profile::MessageRow>(const profile::MemoryCounts&)> remarks_on_memory;
  std::string collector;                          // path of libcrosstalk.so
  bool recorded_itself = false;                   // by another recorder, which has the command, too
  std::vector<profile::MessageRow> warnings;      // found before the start; written to the profile
  std::vector<profile::MessageRow> remarks;       // the same, but nobody is told them now
  std::vector<profile::CounterRow> counters;      // that are read of threads
  std::function<void(const Progress&)> progress;  // about twice a second; may be empty
  std::function<void(const std::string&)> warn;   // one line each, during the run
};

struct RecordOutcome {
  int exit_status = 0;              // as a shell has it: 128+N for signal N
  std::optional<int> death_signal;  // that the command has died of, if it has
  Progress totals;
  std::string output;
  // What of the totals is in the file, and why the rest is not; empty: everything is.
  std::uint64_t stored_samples = 0, stored_traps = 0;
  std::string loss;
};

}  // namespace crosstalk::daemon
