// SPDX-License-Identifier: Apache-2.0
// Limits the undetected cost of communication of an analysis, and says it in a sentence.
#pragma once

#include <string>

#include "attribution/model/model.h"
#include "attribution/stages/reachable_time.h"

namespace crosstalk::attribution {

/// `uncovered_s`: CPU time that no sample represents. `analysis` has all of its communication, sight and sampling.
[[nodiscard]] Undetected undetected_cost(const Analysis& analysis, const ReachableTime& time, double uncovered_s);

/// One sentence: the limit, and what the evidence cannot see. Empty if the analysis has not been asked.
[[nodiscard]] std::string undetected_in_words(const Analysis& analysis);

}  // namespace crosstalk::attribution
