// SPDX-License-Identifier: Apache-2.0
// Instructions a cycle without a counter of cycles: a chain of dependent additions, one a cycle, is timed beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "collectors/calibration/bench.h"

namespace crosstalk::collectors::calibration {

/// Instructions a cycle of `run(rounds)` on one core, with `instructions` in a round. Asks for a figure's effort. Each
/// try times the chain and then the rounds; the best chain of all tries is the cycle, so that another program's work
/// lengthens no cycle. `rounds`: of each try; 0: as many as a try takes.
[[nodiscard]] models::Figure per_cycle_figure(Bench& bench, const std::string& method, double instructions,
                                              const std::function<void(std::uint64_t rounds)>& run,
                                              std::uint64_t rounds = 0);

}  // namespace crosstalk::collectors::calibration
