// SPDX-License-Identifier: Apache-2.0
// Names of events and what each stands for on this machine, as a library of them has it.
#pragma once

#include <linux/perf_event.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace crosstalk::collectors {

struct EventLibrary {
  /// Returns the attributes that select the event, for user mode, without its period and the fields of its samples.
  /// Errors are the library's words.
  std::function<Result<perf_event_attr>(const std::string& name)> encode;
  /// All names that it knows here, "EVENT" and "EVENT:UNIT_MASK".
  std::function<std::vector<std::string>()> names;
};

/// libpfm4's: the events of the processor, if it knows that, and the kernel's own.
[[nodiscard]] EventLibrary libpfm4();

}  // namespace crosstalk::collectors
