// SPDX-License-Identifier: Apache-2.0
// Hardware counters of a profile, brought to its loops and threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "attribution/counters/counter_rates.h"
#include "attribution/objects/program_view.h"
#include "profile/reader.h"

namespace crosstalk::attribution {

struct CountedCode {
  std::vector<CounterRates> loops;                // by loop; empty: no counters were read
  std::shared_ptr<const CounterSummary> summary;  // null: the same
};
/// Reads the profile's readings. They are attributed to the innermost of `loops` that they stand in, and those around
/// it.
[[nodiscard]] Result<CountedCode> count_code(const profile::ProfileReader& profile, const ProgramView& view,
                                             std::span<const LoopRow> loops);

/// Where counters tell how many instructions, operations, loads and stores loops execute, that replaces what follows
/// from their code. `counted`: by loop.
void count_rates(std::vector<LoopRow>& loops, std::span<const CounterRates> counted);

}  // namespace crosstalk::attribution
