// SPDX-License-Identifier: Apache-2.0
// The published study of communication counts by hardware samples, repeated: total counts over the share of shared
// data, the number of threads and that of debug registers, and over the sampling period.
#pragma once

#include <span>

#include "tests/simulation/scenario.h"

namespace crosstalk::simulation {

/// Named "published_SOURCE_N_threads_PERCENT_shared_N_registers_X_periods".
[[nodiscard]] std::span<const Scenario> published_scenarios();

}  // namespace crosstalk::simulation
