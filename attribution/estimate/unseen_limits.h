// SPDX-License-Identifier: Apache-2.0
// Limits of communication that no watch saw (unseen.h computes them).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace crosstalk::attribution {

/// Upper limits of unseen communication by sort: its time in nanoseconds; for samples that count accesses, its number.
struct SortLimits {
  double true_ns = 0, false_ns = 0;
};
/// Limits for one consuming thread: everywhere, and on lines that it may have shared unseen with a thread that was seen
/// to be its partner. The latter are lines that were ever suspected (nothing suggests that just this pair shares any
/// other), and also all others if not all threads were armed: most watches there had not armed the partner, so lines
/// that the pair shares go unsuspected.
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
