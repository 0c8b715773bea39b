// SPDX-License-Identifier: Apache-2.0
// Caps costs and gains, and communication that no watch saw, at the consumers' CPU time.
#pragma once

#include <vector>

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// Caps the upper limits of costs and gains at the CPU time of the consumers: a cost's interval, a part of all CPU
/// time, may exceed it. Caps gains at the upper limits of their costs, too. Does not change processors' matrices.
void limit_gains(Communication& communication, const std::vector<ThreadSummary>& threads);
void limit_gains(std::vector<FunctionCode>& code, const std::vector<ThreadSummary>& threads);
/// Caps the limits of unseen communication at the CPU time that is left beside the communication seen.
void limit_unseen(Communication& communication, const std::vector<ThreadSummary>& threads);

}  // namespace crosstalk::attribution
