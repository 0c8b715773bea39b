// SPDX-License-Identifier: Apache-2.0
// How long this machine's core takes for what a line that stays in its cache costs.
#pragma once

#include "profile/model.h"

namespace crosstalk::collectors {

/// Measures on the calling thread, some 2 ms; the least of several tries each, so that what disturbs a try does not
/// count. Fields are 0 where a figure makes no sense.
[[nodiscard]] profile::CoreTimes measure_core_times();

}  // namespace crosstalk::collectors
