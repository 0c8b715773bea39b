// SPDX-License-Identifier: Apache-2.0
// Events that a user names (`record --event`), in the kernel's terms or by a library's name. Pure, but for the library.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collectors/pmu/event_library.h"
#include "collectors/pmu/memory_events.h"

namespace crosstalk::collectors {

/// Returns the event called `name`: "UNIT/TERMS/" ("cpu/event=0xd0,umask=0x82/", "cpu/mem-stores/",
/// "ibs_op/cnt_ctl=1/"), perhaps with perf's modifiers u and p behind it, else one of the library's. The event's
/// quantity tells what its samples stand for. An error is one line, with the nearest names.
[[nodiscard]] Result<MemoryEvent> named_event(const MachineDescription& machine, const EventLibrary& library,
                                              const std::string& name, const MemorySampling& wanted = {});

/// Returns up to three of `known`: the ones with the fewest edits from `given`, nearest first; ignores case.
[[nodiscard]] std::vector<std::string> nearest_names(std::string_view given, std::span<const std::string> known);

}  // namespace crosstalk::collectors
