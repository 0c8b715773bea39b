// SPDX-License-Identifier: Apache-2.0
// How much communication there may be at most that no watch saw (unseen.h finds it).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace crosstalk::attribution {

/// Upper limits of what there is of one sort that was not seen: time in communication, nanoseconds; of samples that
/// count accesses, communications.
struct SortLimits {
  double true_ns = 0, false_ns = 0;
};
/// Of what one thread consumes: wherever that is, and where a thread that was seen to be its partner may have shared
/// lines with it unseen. That is on lines that were ever suspected (of others nothing says that just this pair shares
/// them) and, where not all threads were armed, on the others, too: most watches there had not armed the partner, so
/// lines that the pair shares go unsuspected.
struct ThreadLimits {
  std::uint32_t thread = 0;
  SortLimits anywhere, of_partner;
};
struct UnseenLimits {
  SortLimits anywhere;                // of all threads together
  std::vector<ThreadLimits> threads;  // by thread; those of which no eligible sample is known are left out
  /// nullptr: nothing is known of the thread.
  [[nodiscard]] const ThreadLimits* of(std::uint32_t thread) const {
    const auto found = std::lower_bound(threads.begin(), threads.end(), thread,
                                        [](const ThreadLimits& limits, std::uint32_t t) { return limits.thread < t; });
    return found != threads.end() && found->thread == thread ? &*found : nullptr;
  }
};

}  // namespace crosstalk::attribution
