// SPDX-License-Identifier: Apache-2.0
// Hardware counters as evidence of a loop's traffic and of its cycles, in the terms of the models. Pure.
#pragma once

#include <optional>

#include "attribution/counters/counter_rates.h"
#include "models/busy_time.h"
#include "models/cycle_accounting.h"

namespace crosstalk::attribution {

/// Bytes a second between the unit and the one nearer to the core, both ways. Absent if one way was not counted, and
/// for the floating-point units and the first level, for which counters give no bytes. A loop that hardly stores has
/// hardly anything to write back.
[[nodiscard]] models::ByUnit<std::optional<double>> counted_bytes(const CounterRates& rates);

/// True if counted bytes replace different ones from the code. For memory, only if they are more: counted misses of the
/// last level exclude prefetches into it, so they are a lower bound.
[[nodiscard]] bool takes_counted(models::Unit unit, double counted, std::optional<double> by_code);

/// Divides the time in user code, `seconds`, by the use of its cycles. If counters do not separate waits for data from
/// waits for a functional unit, divides their sum as samples stand, `sampled`. False: the counters do not tell.
bool tell_of_cycles(const CounterRates& rates, double seconds, const std::optional<models::Standing>& sampled,
                    models::CycleEvidence& evidence);

}  // namespace crosstalk::attribution
