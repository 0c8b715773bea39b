// SPDX-License-Identifier: Apache-2.0
// Selects the source of a session's samples from the request, the machine, and the kernel's permissions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "collectors/pmu/event_library.h"
#include "collectors/pmu/source_choice.h"
#include "driver/options/record_options.h"

namespace crosstalk::driver {

struct SourceSelection {
  collectors::ChosenSource chosen;
  /// Option that requires this very source, for example "--source pebs"; empty: none does.
  std::string asked_by;
  bool named_events = false;  ///< its events were named one by one
};

/// Fails with a one-line error if the requested source or event is unavailable.
[[nodiscard]] Result<SourceSelection> select_source(const RecordRequest& request,
                                                    const collectors::MachineDescription& machine,
                                                    const collectors::EventLibrary& library,
                                                    const collectors::EventTrial& trial);

/// For the user, which source it is and why not a better one, in a line; empty if the user named it.
[[nodiscard]] std::string in_a_line(const SourceSelection& selected);

/// For the user, that a clock inside the target may ring less often than `config` wants, in a line; empty: it does not.
/// `tick_ns`: of the kernel, which looks at POSIX timers of CPU time no more often.
[[nodiscard]] std::string coarse_clock_in_a_line(const profile::SessionConfig& config, std::uint64_t tick_ns);
/// The kernel's tick; 0: not known.
[[nodiscard]] std::uint64_t kernel_tick_ns();

/// Adapts a selection to a collector inside the target: keeps the source if its events can be sampled from inside, else
/// falls back to the clock with the reason. Events that were named one by one always need watching from outside.
[[nodiscard]] SourceSelection inside(SourceSelection selected);
/// Returns why inside() falls back to the clock; empty if the events can be sampled from inside, or there are none.
[[nodiscard]] std::string obstacle_inside(const SourceSelection& selected);

}  // namespace crosstalk::driver
