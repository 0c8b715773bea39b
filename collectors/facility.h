// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace crosstalk::collectors {

/// One thing that a session may need.
struct Facility {
  std::string name;  // "watchpoints", "line probes", "perf task-clock", "POSIX timer", "kernel", "PEBS", "IBS", ...
  bool available = false;
  std::string found;   // what was found: "4 debug registers", "perf_event_paranoid is 3", ...
  std::string remedy;  // the exact command that would give it; empty when available or hopeless
};

}  // namespace crosstalk::collectors
