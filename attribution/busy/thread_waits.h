// SPDX-License-Identifier: Apache-2.0
// Where each thread's elapsed time went, from its clocks, from what it waits for other threads for, and from its loops.
#pragma once

#include "attribution/model.h"

namespace crosstalk::attribution {

/// Fills in `waits` of threads that have ended or were observed to the end, from all else of the analysis. Time on
/// locks, barriers and condition variables is what their communicating accesses cost; time asleep there is `blocked`.
void add_thread_waits(Analysis& analysis, const std::vector<profile::ThreadRow>& threads);

}  // namespace crosstalk::attribution
