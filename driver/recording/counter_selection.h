// SPDX-License-Identifier: Apache-2.0
// Selects the hardware counters of a session from the request, the machine, and the kernel's permissions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/pmu/counter_groups.h"
#include "driver/options/record_options.h"
#include "profile/model.h"

namespace crosstalk::driver {

struct CounterSelection {
  std::vector<collectors::CounterGroup> groups;  // none: counters are not read
  std::vector<std::string> lacking;              // counters that are not read, and why
  bool asked = false;                            // by the command line, which takes watching from outside
  std::string refusal;                           // why none is read although some are wanted; else empty
  bool remediable = false;                       // the machine has them, but the kernel refuses them
};

/// Fails with a one-line error if a name is unknown.
[[nodiscard]] Result<CounterSelection> select_counters(const RecordRequest& request,
                                                       const collectors::MachineDescription& machine,
                                                       const collectors::EventLibrary& library,
                                                       const collectors::GroupTrial& trial, bool nmi_watchdog);

/// Returns an empty selection, because the collector runs inside of the target.
[[nodiscard]] CounterSelection no_counters_inside(CounterSelection selected);

/// Messages about the selection: warnings for the user, and remarks for the profile alone.
struct CounterWords {
  std::vector<profile::MessageRow> warnings, remarks;
};
[[nodiscard]] CounterWords words_of(const CounterSelection& selected);

}  // namespace crosstalk::driver
