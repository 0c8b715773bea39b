// SPDX-License-Identifier: Apache-2.0
// Waits for other threads as they were measured where they begin (profile/wait_table.h): by thread, place and loop.
#pragma once

#include <span>
#include <vector>

#include "attribution/model.h"
#include "attribution/objects/program_view.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// Waits by kind and place in the source, the longest first; the sums of threads (in `threads`, by index) whose waits
/// were measured; and, in `loops`, what is waited for in calls that they make, and loops inside them. `end_ns`: of the
/// session. Rows of threads that are not known are left out.
struct MeasuredWaits {
  std::vector<WaitPlace> places;
  std::vector<std::optional<Waited>> threads;
};
[[nodiscard]] MeasuredWaits measured_waits(std::span<const profile::ThreadWaitRow> rows, const ProgramView& view,
                                           std::uint64_t end_ns, std::vector<LoopRow>& loops);

/// As in JSON: "mutex", "rwlock", ...
[[nodiscard]] const char* wait_kind_name(profile::WaitKind kind);

}  // namespace crosstalk::attribution
