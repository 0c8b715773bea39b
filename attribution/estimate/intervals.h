// SPDX-License-Identifier: Apache-2.0
// Intervals of sums of few events with different weights. Pure functions.
#pragma once

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// The 95 % interval of a sum of weighted Poisson variates: Fay and Feuer, Confidence intervals for directly
/// standardized rates: a method based on the gamma distribution, Statistics in Medicine 16 (1997). `sum` and its
/// `variance` are estimates. `event` is the most that one more event would have added; 0 if the variance allows for it.
/// All are >= 0, in one unit and its square. With many events the interval is the normal one; with few it is
/// asymmetric, and its lower limit stays above 0.
[[nodiscard]] Interval event_interval(double sum, double variance, double event);

/// The upper limit of event_interval() of no events, in events.
inline constexpr double most_unseen_events = 3.6888794541139363;

}  // namespace crosstalk::attribution
