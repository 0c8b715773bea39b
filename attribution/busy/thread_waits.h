// SPDX-License-Identifier: Apache-2.0
// Divides each thread's elapsed time by its clocks, its waits for other threads, and its loops.
#pragma once

#include <span>

#include "attribution/model/model.h"
#include "attribution/samples/sample_digest.h"

namespace crosstalk::attribution {

/// Data of a profile's threads, each by index.
struct ThreadEvidence {
  const std::vector<profile::ThreadRow>& rows;
  std::span<const ThreadTotal> samples;
  std::span<const std::optional<Waited>> waited;  // absent: its waits were not measured
};

/// Fills in `waits` of threads that have ended or were observed to the end, from the rest of the analysis. Without
/// measured waits, time on locks, barriers and condition variables is the cost of their communicating accesses, and
/// time asleep there is `blocked`. Sampled waits are that time asleep, beside the cost.
void add_thread_waits(Analysis& analysis, const ThreadEvidence& evidence);

}  // namespace crosstalk::attribution
