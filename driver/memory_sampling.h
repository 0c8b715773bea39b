// SPDX-License-Identifier: Apache-2.0
// The events of a session that sample memory accesses: as the profile names them, and as targets open them themselves.
#pragma once

#include <string>
#include <vector>

#include "collectors/pmu/memory_events.h"
#include "profile/arena.h"
#include "profile/model.h"

namespace crosstalk::driver {

/// Why threads cannot be sampled by these events from inside; empty: they can.
[[nodiscard]] std::string obstacle_inside(const std::vector<collectors::MemoryEvent>& events);

/// What is put into the arena for targets to open; obstacle_inside() must have none.
[[nodiscard]] profile::MemorySampling sampling_inside(const std::vector<collectors::MemoryEvent>& events);

/// The events by their numbers, which they are given: 1 on.
[[nodiscard]] std::vector<profile::EventRow> number_events(std::vector<collectors::MemoryEvent>& events);

/// What became of the samples that targets took by themselves, as warnings.
[[nodiscard]] std::vector<profile::MessageRow> remarks_on_memory(const profile::MemoryCounts& counts, bool watchdog);

}  // namespace crosstalk::driver
