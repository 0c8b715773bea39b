// SPDX-License-Identifier: Apache-2.0
// No more can be gained than the time that those who pay have.
#pragma once

#include <vector>

#include "attribution/model.h"

namespace crosstalk::attribution {

/// Cuts the upper limits of gains at the CPU time of the consumers, of which a cost's interval, a part of all CPU time,
/// knows nothing. Processors' matrices are left as they are.
void limit_gains(Communication& communication, const std::vector<ThreadSummary>& threads);
void limit_gains(std::vector<FunctionCode>& code, const std::vector<ThreadSummary>& threads);

}  // namespace crosstalk::attribution
