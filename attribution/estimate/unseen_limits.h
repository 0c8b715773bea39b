// SPDX-License-Identifier: Apache-2.0
// How much communication there may be at most that no watch saw (unseen.h finds it).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace crosstalk::attribution {

/// Upper limits of time in communication of one sort that was not seen, nanoseconds.
struct SortLimits {
  double true_ns = 0, false_ns = 0;
};
/// Of what one thread consumes: wherever that is, and on lines that were ever suspected.
struct ThreadLimits {
  std::uint32_t thread = 0;
  SortLimits anywhere, suspected;
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
