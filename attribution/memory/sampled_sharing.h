// SPDX-License-Identifier: Apache-2.0
// Which threads communicate, from samples alone: a thread's access to a line, and other threads' stores to it that were
// sampled near in time. An estimate of another kind than that of watchpoints, and never mixed with it: nobody saw which
// store an access came after.
//
// A load that found the line modified in another cache (HITM) did communicate; it stands for its weight in such loads.
// Who had modified the line is not in the sample: it is shared out among the threads of the sampled stores to the line
// within the window before and after, as their numbers are. Without any, it is counted as unattributed. Where a source
// does not tell where an access found its line, the access is only counted as possible, and stands for itself.
#pragma once

#include "attribution/memory/memory_model.h"
#include "attribution/memory/sampled_lines.h"

namespace crosstalk::attribution {

inline constexpr std::uint64_t sharing_window_ns = 10'000'000;

[[nodiscard]] SampledSharing sampled_sharing(const SampledLines& lines, std::uint64_t window_ns = sharing_window_ns);

}  // namespace crosstalk::attribution
