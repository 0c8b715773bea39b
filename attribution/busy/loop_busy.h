// SPDX-License-Identifier: Apache-2.0
// Computes loops' busy times, waits and remedies from their rates, code and samples, on the calibrated machine.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "attribution/busy/loop_figures.h"
#include "attribution/busy/loop_standing.h"
#include "attribution/busy/stream_samples.h"
#include "attribution/model/model.h"
#include "attribution/program/program_view.h"
#include "profile/model.h"

namespace crosstalk::attribution {

struct BusyEvidence {
  const models::Machine* machine = nullptr;  // null: not calibrated; what needs it is absent
  const std::map<LoopPlace, LoopPairs>& pairs;
  const std::map<LoopPlace, LoopStanding>& standings;
  profile::CoreTimes core;                     // as the recorder has measured them
  std::span<const CounterRates> counted = {};  // by loop; empty: no counters were read
};

/// Fills in `figures` of all loops from their rates and from the waits `waited` in them.
void add_figures(std::vector<LoopRow>& loops, const BusyEvidence& evidence, const ProgramView& view);

}  // namespace crosstalk::attribution
