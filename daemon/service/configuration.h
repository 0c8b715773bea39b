// SPDX-License-Identifier: Apache-2.0
// The daemon's configuration, a TOML file. crosstalkd.toml(5) describes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace crosstalk::service {

/// How a service's processes are recognised.
enum class MatchBy {
  unit,        // a systemd unit's name: a component of the cgroup's path
  cgroup,      // a cgroup's path: this group and those below
  executable,  // a shell pattern for the executable's path
  command,     // a shell pattern for the arguments, joined by spaces
};

struct Match {
  MatchBy by = MatchBy::unit;
  std::string pattern;

  [[nodiscard]] bool operator==(const Match&) const = default;
};

/// A service that is watched all the time.
struct ServiceSettings {
  std::string name;  // letters, digits, '.', '_' and '-'; a directory is called so
  Match match;
  double budget = 0.01;           // fraction of its threads' CPU time
  std::uint64_t interval_s = 60;  // of one profile
  bool children = true;           // with the processes that it starts
  bool watch = true;              // all the time; false: only when it is asked for
  bool access = false;            // the group may record it and fetch its profiles
  bool pprof = false;             // each profile also for readers of pprof

  [[nodiscard]] bool operator==(const ServiceSettings&) const = default;
};

struct Configuration {
  double budget = 0.03;                        // most that all sessions together may take of a process's CPU time
  std::uint32_t sessions = 50;                 // at once, of clients
  std::uint64_t longest_s = 3600;              // of a client's session
  std::string group = "crosstalk";             // its members may record services with `access`
  std::string state = "/var/lib/crosstalk";    // directory of the profiles
  std::uint64_t max_age_s = 7 * 24 * 3600ULL;  // of a profile
  std::uint64_t max_bytes = 1ULL << 30U;       // of all profiles
  std::string metrics_address = "127.0.0.1";   // empty: no metrics are served
  std::uint16_t metrics_port = 9947;
  std::uint32_t metrics_rows = 20;  // objects, pairs and loops of a service that have metrics of their own, each
  std::vector<ServiceSettings> services;
};

/// `name`: the file's, for errors. Refuses what it does not know: an unknown key, a wrong type, a value out of range.
[[nodiscard]] Result<Configuration> parse_configuration(std::string_view text, const std::string& name);

/// Reads and parses a file.
[[nodiscard]] Result<Configuration> read_configuration(const std::string& path);

}  // namespace crosstalk::service
