// SPDX-License-Identifier: Apache-2.0
// A session's memory access events: as the profile names them, and as targets open them themselves.
#pragma once

#include <string>
#include <vector>

#include "collectors/pmu/memory_events.h"
#include "profile/arena.h"
#include "profile/model.h"

namespace crosstalk::driver {

/// Returns why threads cannot be sampled by these events from inside; empty if they can.
[[nodiscard]] std::string obstacle_inside(const std::vector<collectors::MemoryEvent>& events);

/// Returns the part of the arena that targets open events from. Precondition: obstacle_inside() is empty.
[[nodiscard]] profile::MemorySampling sampling_inside(const std::vector<collectors::MemoryEvent>& events);

/// Numbers the events from 1 on, and returns their rows.
[[nodiscard]] std::vector<profile::EventRow> number_events(std::vector<collectors::MemoryEvent>& events);

/// Returns warnings about the samples that targets took themselves.
[[nodiscard]] std::vector<profile::MessageRow> remarks_on_memory(const profile::MemoryCounts& counts, bool watchdog);

}  // namespace crosstalk::driver
