// SPDX-License-Identifier: Apache-2.0
// What hardware counters say of a loop's traffic and of what its cycles went to, in the words of the models. Pure.
#pragma once

#include <optional>

#include "attribution/counters/counter_rates.h"
#include "models/busy_time.h"
#include "models/cycle_accounting.h"

namespace crosstalk::attribution {

/// Bytes a second between the unit and the one nearer to the core, both ways; absent where a way was not counted, and
/// for the floating-point units and the first level, of which counters tell no bytes. A loop that hardly stores has
/// hardly anything to write back.
[[nodiscard]] models::ByUnit<std::optional<double>> counted_bytes(const CounterRates& rates);

/// Are the counted bytes taken, where code says others? Those of memory only if they are more: the misses of the last
/// level that are counted leave out what is prefetched into it, and so are the least that can have moved.
[[nodiscard]] bool takes_counted(models::Unit unit, double counted, std::optional<double> by_code);

/// Gives the time in user's code, `seconds`, to what its cycles went to. Where counters do not tell waits for data from
/// those for a functional unit, these share what they have in common as samples stand, `sampled`. False: the counters
/// do not tell.
bool tell_of_cycles(const CounterRates& rates, double seconds, const std::optional<models::Standing>& sampled,
                    models::CycleEvidence& evidence);

}  // namespace crosstalk::attribution
