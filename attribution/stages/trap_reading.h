// SPDX-License-Identifier: Apache-2.0
// The first stage of an analysis: reads watches and traps, and collects what else must be read to describe them.
#pragma once

#include <vector>

#include "attribution/counts/trap_index.h"
#include "attribution/objects/data_objects.h"
#include "attribution/program/program_view.h"
#include "attribution/samples/sample_digest.h"
#include "attribution/timeline/ownership_timeline.h"
#include "profile/reader.h"

namespace crosstalk::attribution {

/// The results of the traps.
struct TrapsRead {
  std::vector<OwnershipTimeline> timelines;  // by watch; what one without visitors saw is not kept
  TrapIndex traps;
};

/// Reads the traps once. Adds to `lines` the lines with communication, and requests from `stacks` the call stacks of
/// both sides, of the blocks there, and of the threads that created threads. Errors are the reader's.
[[nodiscard]] Result<TrapsRead> read_traps(const profile::ProfileReader& profile, const ProgramView& view,
                                           const BlockIndex& blocks, LineSet& lines, StackTable& stacks);

}  // namespace crosstalk::attribution
