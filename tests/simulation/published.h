// SPDX-License-Identifier: Apache-2.0
// The published study of communication counts by hardware samples, repeated: total counts over the share of shared
// data, the number of threads and that of debug registers, and over the sampling period. Beyond it, at 4 threads and
// 50 % shared: skid, thresholds of latency, the size of the bulletin board, probes, and watches that come late.
#pragma once

#include <span>

#include "tests/simulation/scenario.h"

namespace crosstalk::simulation {

/// Named "published_SOURCE_N_threads_PERCENT_shared_N_registers_X_periods", then "_pairs" if threads load and then
/// store instead of updating, and "_DIMENSION_VALUE" if something else is varied.
[[nodiscard]] std::span<const Scenario> published_scenarios();

}  // namespace crosstalk::simulation
