// SPDX-License-Identifier: Apache-2.0
// From loops' rates, code and samples to their busy times, waits and remedies, on the machine that was calibrated.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "attribution/busy/loop_figures.h"
#include "attribution/busy/loop_standing.h"
#include "attribution/busy/stream_samples.h"
#include "attribution/model.h"
#include "attribution/objects/program_view.h"
#include "profile/model.h"

namespace crosstalk::attribution {

struct BusyEvidence {
  const models::Machine* machine = nullptr;  // null: not calibrated; what needs it is absent
  const std::map<LoopPlace, LoopPairs>& pairs;
  const std::map<LoopPlace, LoopStanding>& standings;
  profile::CoreTimes core;                     // as the recorder has measured them
  std::span<const CounterRates> counted = {};  // by loop; empty: no counters were read
};

/// Fills in `figures` of all loops, from their rates and from what is `waited` in them.
void add_figures(std::vector<LoopRow>& loops, const BusyEvidence& evidence, const ProgramView& view);

}  // namespace crosstalk::attribution
