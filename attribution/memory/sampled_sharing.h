// SPDX-License-Identifier: Apache-2.0
// Estimates which threads communicate from samples alone: a thread's access to a line, and other threads' stores to it
// that were sampled near in time. This estimate is never mixed with that of watchpoints, because samples do not show
// which store an access came after.
//
// A load that found the line modified in another cache (HITM) did communicate; it represents its weight in such loads.
// The sample does not name the producer: it is divided among the threads of the sampled stores to the line within the
// window before and after, in proportion to their numbers. Without any, it counts as unattributed. If a source does not
// tell the place of an access's line, the access only counts as possible, and represents itself.
#pragma once

#include "attribution/memory/sampled_lines.h"
#include "attribution/model/memory_model.h"

namespace crosstalk::attribution {

inline constexpr std::uint64_t sharing_window_ns = 10'000'000;

[[nodiscard]] SampledSharing sampled_sharing(const SampledLines& lines, std::uint64_t window_ns = sharing_window_ns);

}  // namespace crosstalk::attribution
