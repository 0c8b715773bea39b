// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace crosstalk::attribution {
struct CounterRates;
}  // namespace crosstalk::attribution

namespace crosstalk::driver {

/// Returns "1.80 instructions a cycle, cycles 3.1 G/s, ...", or why there are no counters.
[[nodiscard]] std::string counters_in_words(const attribution::CounterRates& rates);

}  // namespace crosstalk::driver
