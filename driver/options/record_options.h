// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk record`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/options/command_line.h"
#include "profile/arena.h"

namespace crosstalk::driver {

enum class SourceChoice { automatic, clock, pebs, ibs, ibs_kmod };
/// Hardware counters: `automatic` reads them if the command is watched from outside anyway.
enum class CounterChoice { automatic, on, off };

/// How communication is seen: `automatic` uses the method that passed the self-tests.
enum class MethodWish { automatic, watch, probe };

/// The observer: `automatic` has crosstalkd do it if this user may not, and a daemon is there.
enum class DaemonWish { automatic, always, never };

struct RecordRequest {
  std::string output = "crosstalk.db";  // as typed, with %p %h %t %%
  std::uint64_t switch_ns = 0;          // of --switch-output; 0: one profile
  std::size_t switch_most = 0;          // of --switch-max-files; 0: all
  bool quiet = false;
  int verbosity = 0;  // number of -v
  SourceChoice source = SourceChoice::automatic;
  MethodWish method = MethodWish::automatic;
  std::vector<std::string> memory_events;  // of --event, those that are no clock's
  CounterChoice counters = CounterChoice::automatic;
  std::vector<std::string> counter_names;  // of --counters; empty: all that the figures need
  bool observer = false;                   // the command is watched from outside in any case
  std::uint64_t delay_ns = 0;              // before anything is observed
  std::vector<pid_t> pids;                 // of -p: the processes to attach to
  bool attach_children = false;            // with those that they start
  std::optional<uid_t> owner;              // of --owner: only processes that belong to this user
  std::vector<int> pidfds;                 // of --pidfd: one of each of `pids`, or none
  bool inject = false;                     // the collector is brought into the one process
  std::uint64_t duration_ns = 0;           // of the attachment; 0: until the processes end
  DaemonWish daemon = DaemonWish::automatic;
  profile::SessionConfig config;     // the user's choices, else defaults
  std::vector<std::string> command;  // empty with -p, and only then
};

[[nodiscard]] Result<Parsed<RecordRequest>> parse_record(const Arguments& arguments);

/// The option's word for a source: "auto", "clock", "pebs", "ibs", "ibs-kmod".
[[nodiscard]] std::string source_name(SourceChoice source);

/// The words of --method and --partner.
[[nodiscard]] std::string method_word(MethodWish method);
[[nodiscard]] std::string partner_word(profile::Partner partner);

}  // namespace crosstalk::driver
