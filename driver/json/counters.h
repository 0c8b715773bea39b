// SPDX-License-Identifier: Apache-2.0
// Hardware counters as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "attribution/counters/counter_rates.h"

namespace crosstalk::driver {

/// Returns the rates of a loop or a thread.
[[nodiscard]] nlohmann::ordered_json counter_rates(const attribution::CounterRates& rates);
/// Returns the report's member `counters`: the counters and the threads' rates; null if none was read.
[[nodiscard]] nlohmann::ordered_json counters(const attribution::Analysis& analysis);

}  // namespace crosstalk::driver
