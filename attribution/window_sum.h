// SPDX-License-Identifier: Apache-2.0
// Adds up the analyses of successive intervals of one recording, for a view of the last seconds. A pure function.
#pragma once

#include <cstddef>
#include <span>

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// Returns the analysis of all intervals together, at most `max_rows` lines, pairs, objects, functions and source lines
/// of code each. `intervals` are in the order of time, not empty, and number threads alike (renumber.h).
/// - Times, costs and numbers of observations are added; a cost that is unknown in some intervals is that of the
/// others.
/// - Intervals of time do not depend on each other, so their 95 % intervals are added in quadrature.
/// - A gain that is known for at least half of its cost is taken to be as great a part of the rest.
/// - Shares are weighted by the intervals' CPU time, or by their samples if that is not known.
/// - Words (kinds of sharing, fields, classes of loops) are those of the interval in which the row cost most; the
///   recording's own facts are the last interval's. Findings are made anew from the sum.
/// - What communication goes unseen at most is the greatest of the intervals' limits, since none saw any of it. The
/// limits of
///   undetected cost are added.
/// Invalidations, processors' matrices, regions, places of waits, rates and hardware samples are left out.
[[nodiscard]] Analysis sum_of_intervals(std::span<const Analysis* const> intervals, std::size_t max_rows = 100);

}  // namespace crosstalk::attribution
