// SPDX-License-Identifier: Apache-2.0
// A made snapshot of a made program: workers 1 and 2 falsely share `counters`, 3 passes `queue` to 4.
#pragma once

#include <cstdint>

#include "driver/live/snapshot.h"

namespace crosstalk::driver::live::test {

Snapshot sample_snapshot();
/// The same with `threads` threads that all communicate with their neighbours.
Snapshot crowded_snapshot(std::uint32_t threads);

}  // namespace crosstalk::driver::live::test
