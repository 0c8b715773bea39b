// SPDX-License-Identifier: Apache-2.0
// Where each thread's elapsed time went, from its clocks, from what it waits for other threads for, and from its loops.
#pragma once

#include <span>

#include "attribution/model.h"
#include "attribution/timeline/sample_digest.h"

namespace crosstalk::attribution {

/// What is known of a profile's threads, each by index.
struct ThreadEvidence {
  const std::vector<profile::ThreadRow>& rows;
  std::span<const ThreadTotal> samples;
  std::span<const std::optional<Waited>> waited;  // absent: its waits were not measured
};

/// Fills in `waits` of threads that have ended or were observed to the end, from all else of the analysis. Where waits
/// for other threads were not measured, time on locks, barriers and condition variables is what their communicating
/// accesses cost, and time asleep there is `blocked`.
void add_thread_waits(Analysis& analysis, const ThreadEvidence& evidence);

}  // namespace crosstalk::attribution
