// SPDX-License-Identifier: Apache-2.0
// Findings on measured waits for locks and barriers.
#pragma once

#include <vector>

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// One finding for each lock or barrier that took a notable part of its threads' time, the longest wait first. A lock
/// that is known by its variable has all its places in one.
struct WaitFinding {
  Finding finding;
  double waited_s = 0;
  double share = 0;  // of the elapsed time of the threads that waited; 0: not known
};
[[nodiscard]] std::vector<WaitFinding> wait_findings(const Analysis& analysis);

}  // namespace crosstalk::attribution
