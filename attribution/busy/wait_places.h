// SPDX-License-Identifier: Apache-2.0
// Measured waits for other threads (profile/wait_table.h), by thread, place and loop.
#pragma once

#include <span>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/program/program_view.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// Waits by kind and place in the source, the longest first; the sums of threads (in `threads`, by index) with measured
/// waits; and, in `loops`, the waits in calls from them and from their inner loops. `end_ns`: of the session. Leaves
/// out rows of unknown threads.
struct MeasuredWaits {
  std::vector<WaitPlace> places;
  std::vector<std::optional<Waited>> threads;
};
[[nodiscard]] MeasuredWaits measured_waits(std::span<const profile::ThreadWaitRow> rows, const ProgramView& view,
                                           std::uint64_t end_ns, std::vector<LoopRow>& loops);

/// The names in JSON: "mutex", "rwlock", ...
[[nodiscard]] const char* wait_kind_name(profile::WaitKind kind);

}  // namespace crosstalk::attribution
