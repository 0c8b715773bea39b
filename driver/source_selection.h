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
  bool named_events = false;  ///< its events were named one by one
};

/// Refused in one line: a source or an event that was asked for and cannot be had.
[[nodiscard]] Result<SourceSelection> select_source(const RecordRequest& request,
                                                    const collectors::MachineDescription& machine,
                                                    const collectors::EventLibrary& library,
                                                    const collectors::EventTrial& trial);

/// For what is recorded with the collector inside: as it was selected where that can sample itself by its events, else
/// the clock instead, with the reason. Events that were named one by one are always for what is watched from outside.
[[nodiscard]] SourceSelection inside(SourceSelection selected);
/// Why it would be the clock; empty: the events can sample from inside, or there are none.
[[nodiscard]] std::string obstacle_inside(const SourceSelection& selected);

}  // namespace crosstalk::driver
