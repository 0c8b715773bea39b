// SPDX-License-Identifier: Apache-2.0
// Which hardware counters a session reads, by what was asked for, what the machine has, and what the kernel lets this
// user open.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/pmu/counter_groups.h"
#include "driver/record_options.h"
#include "profile/model.h"

namespace crosstalk::driver {

struct CounterSelection {
  std::vector<collectors::CounterGroup> groups;  // none: counters are not read
  std::vector<std::string> lacking;              // what is not counted, and why
  bool asked = false;                            // by the command line, which takes watching from outside
  std::string refusal;                           // why none is read, where some are wanted; empty: they are, or none is
  bool remediable = false;                       // the machine has them; it is the kernel that refuses them
};

/// Refused in one line: a name that is none.
[[nodiscard]] Result<CounterSelection> select_counters(const RecordRequest& request,
                                                       const collectors::MachineDescription& machine,
                                                       const collectors::EventLibrary& library,
                                                       const collectors::GroupTrial& trial, bool nmi_watchdog);

/// None, since the collector is inside of what is recorded.
[[nodiscard]] CounterSelection no_counters_inside(CounterSelection selected);

/// What is to be said of it: warnings for who records, and remarks for the profile alone.
struct CounterWords {
  std::vector<profile::MessageRow> warnings, remarks;
};
[[nodiscard]] CounterWords words_of(const CounterSelection& selected);

}  // namespace crosstalk::driver
