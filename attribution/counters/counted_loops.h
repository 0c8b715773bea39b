// SPDX-License-Identifier: Apache-2.0
// Attributes a profile's hardware counters to its loops and threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "attribution/counters/counter_rates.h"
#include "attribution/program/program_view.h"
#include "profile/reader.h"

namespace crosstalk::attribution {

struct CountedCode {
  std::vector<CounterRates> loops;                // by loop; empty: no counters were read
  std::shared_ptr<const CounterSummary> summary;  // null: the same
};
/// Reads the profile's counter readings and attributes each to the innermost of `loops` that contains it, and to those
/// around.
[[nodiscard]] Result<CountedCode> count_code(const profile::ProfileReader& profile, const ProgramView& view,
                                             std::span<const LoopRow> loops);

/// Replaces rates from loops' code by counted instructions, operations, loads and stores. `counted`: by loop.
void count_rates(std::vector<LoopRow>& loops, std::span<const CounterRates> counted);

}  // namespace crosstalk::attribution
