// SPDX-License-Identifier: Apache-2.0
// The first stage of an analysis: reads the traps, and requests the stacks that describe them.
#pragma once

#include <vector>

#include "attribution/counts/trap_index.h"
#include "attribution/objects/data_objects.h"
#include "attribution/program/program_view.h"
#include "attribution/samples/sample_digest.h"
#include "attribution/timeline/ownership_timeline.h"
#include "profile/reader.h"

namespace crosstalk::attribution {

/// The timelines of all watches, and an index of their traps.
struct TrapsRead {
  std::vector<OwnershipTimeline> timelines;  // by watch; without the accesses of one without visitors
  TrapIndex traps;
};

/// Reads the traps once. Adds to `lines` those with communication, or on which a probe may have seen a store. Requests
/// from `stacks` those of producers and consumers, of the allocations on these lines, and of creators of threads.
/// Errors are the reader's.
[[nodiscard]] Result<TrapsRead> read_traps(const profile::ProfileReader& profile, const ProgramView& view,
                                           const BlockIndex& blocks, LineSet& lines, StackTable& stacks);

}  // namespace crosstalk::attribution
