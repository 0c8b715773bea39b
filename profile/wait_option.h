// SPDX-License-Identifier: Apache-2.0
// Whether a session measures how long threads wait for each other (collectors/in_target/sync/), which it does on
// demand: the functions that stand in for those of locks look at a lock before they take it, and where threads contend
// for it all the time that changes who gets it next.
#pragma once

#include "profile/arena.h"

namespace crosstalk::profile {

/// The first of the words that SessionConfig keeps free.
[[nodiscard]] inline bool measures_waits(const SessionConfig& config) { return config.reserved[0] != 0; }
inline void measure_waits(SessionConfig& config, bool wanted) { config.reserved[0] = wanted ? 1 : 0; }

}  // namespace crosstalk::profile
