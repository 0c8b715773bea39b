// SPDX-License-Identifier: Apache-2.0
// What hardware counters tell, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "attribution/counters/counter_rates.h"

namespace crosstalk::driver {

/// Of a loop or a thread.
[[nodiscard]] nlohmann::ordered_json counter_rates(const attribution::CounterRates& rates);
/// The report's member `counters`: what was counted, and the threads' rates; null where none was read.
[[nodiscard]] nlohmann::ordered_json counters(const attribution::Analysis& analysis);

}  // namespace crosstalk::driver
