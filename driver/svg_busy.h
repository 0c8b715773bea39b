// SPDX-License-Identifier: Apache-2.0
// The source's charts as a picture: busy times and where the time went, of the hottest loops and of each thread.
#pragma once

#include <string>

#include "attribution/model.h"

namespace crosstalk::driver {

/// One page, for screens and for print (A4, portrait): a chart for each of up to five loops, the busy time of each unit
/// on the left of it and its time's parts on the right, and one for the threads. What is not known has its reason
/// instead of a bar. Deterministic.
[[nodiscard]] std::string render_busy_svg(const attribution::Analysis& analysis);

}  // namespace crosstalk::driver
