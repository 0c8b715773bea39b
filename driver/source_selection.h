// SPDX-License-Identifier: Apache-2.0
// Which source samples a session, by what was asked for, what the machine has, and what the kernel lets this user open.
#pragma once

#include <string>

#include "base/result.h"
#include "collectors/pmu/event_library.h"
#include "collectors/pmu/source_choice.h"
#include "driver/record_options.h"

namespace crosstalk::driver {

struct SourceSelection {
  collectors::ChosenSource chosen;
  /// What of the command line takes this source, and no other: "--source pebs"; empty: nothing does.
  std::string asked_by;
};

/// Sources with events are for what is watched from outside; what runs with the collector inside has the clock.
/// Refused in one line: a source or an event that was asked for and can not be had.
[[nodiscard]] Result<SourceSelection> select_source(const RecordRequest& request,
                                                    const collectors::MachineDescription& machine,
                                                    const collectors::EventLibrary& library,
                                                    const collectors::EventTrial& trial);

/// The clock instead, since the collector is inside of what is recorded.
[[nodiscard]] SourceSelection clock_inside(SourceSelection selected);

}  // namespace crosstalk::driver
