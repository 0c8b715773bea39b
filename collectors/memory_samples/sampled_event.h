// SPDX-License-Identifier: Apache-2.0
// The meaning of an event's samples: all that is needed to read them. memory_events.h (collectors/pmu/) chooses and
// opens the event.
#pragma once

#include <cstdint>

#include "profile/records.h"

namespace crosstalk::collectors {

enum class Accesses : std::uint8_t { loads, stores, both };

struct SampledEvent {
  profile::SourceKind source = profile::SourceKind::pebs;
  profile::WeightUnit weight_unit = profile::WeightUnit::accesses;
  Accesses accesses = Accesses::both;
  bool period_random = false;  ///< the hardware varies the period; else the sampler has to
  bool any_period = false;     ///< the kernel's own event: no period is too short for it
};

/// The period next to `period` that the event can be given. A processor's would sample nothing but its own handler at
/// one that is too short.
[[nodiscard]] constexpr std::uint64_t allowed_period(const SampledEvent& event, std::uint64_t period) {
  constexpr std::uint64_t least = 1024;
  constexpr std::uint64_t step = 16;  // IBS does not set the lowest four bits of its counter
  if (event.any_period) {
    return period != 0 ? period : 1;
  }
  const std::uint64_t enough = period > least ? period : least;
  return event.source == profile::SourceKind::ibs ? enough / step * step : enough;
}

}  // namespace crosstalk::collectors
