// SPDX-License-Identifier: Apache-2.0
// Charts of busy times and of time's parts as a picture, for the hottest loops and for each thread.
#pragma once

#include <string>

#include "attribution/model/model.h"

namespace crosstalk::driver {

/// Renders one page for screens and print (A4, portrait): a chart for each of up to five loops, with the units' busy
/// times on the left and the time's parts on the right, and one chart for the threads. An unknown figure has its reason
/// instead of a bar. Deterministic.
[[nodiscard]] std::string render_busy_svg(const attribution::Analysis& analysis);

}  // namespace crosstalk::driver
