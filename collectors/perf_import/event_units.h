// SPDX-License-Identifier: Apache-2.0
// The quantity that a sample of an event stands for.
#pragma once

#include <string>

#include "collectors/perf_data/events.h"
#include "collectors/perf_data/features.h"
#include "profile/model.h"

namespace crosstalk::perf_import {

struct EventUnit {
  profile::SourceKind source = profile::SourceKind::counter;
  profile::WeightUnit unit = profile::WeightUnit::occurrences;  // of its period
  bool at_access = false;  // the sampled instruction is the one that made the access
};

/// `features` name the machine and its PMUs.
[[nodiscard]] EventUnit unit_of(const perf_data::Event& event, const perf_data::Features& features);

/// Returns the profile's row of an event. `id`: the profile's.
[[nodiscard]] profile::EventRow event_row(profile::EventId id, const perf_data::Event& event,
                                          const perf_data::Features& features);

/// How long a cycle takes.
struct CycleTime {
  std::uint32_t ps = 0;
  bool nominal = false;  // as the processor's name has it; else it is not known, and 1 ns is said for it
};
[[nodiscard]] CycleTime cycle_time_of(const perf_data::Features& features);

}  // namespace crosstalk::perf_import
