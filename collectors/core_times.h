// SPDX-License-Identifier: Apache-2.0
// Measures how long this machine's core takes for accesses to a line that stays in its cache.
#pragma once

#include <cstdint>

#include "profile/model.h"

namespace crosstalk::collectors {

/// Measures on the calling thread, some 2 ms; takes the least of several tries each, so that disturbed tries do not
/// count. Fields are 0 if a figure makes no sense.
[[nodiscard]] profile::CoreTimes measure_core_times();

/// The lesser of each figure that both have; a processor that was idle runs slower at first than the program then did.
[[nodiscard]] profile::CoreTimes quicker(const profile::CoreTimes& one, const profile::CoreTimes& other);

/// Returns the time from a store to a load of the same word, in picoseconds, from a chain of loads, additions of one
/// cycle and stores that takes `chain_ps` a link. Today's cores rename the word, so that the load takes no time at all:
/// returns 1 then, since 0 means not measured, as for a link shorter than its addition.
[[nodiscard]] std::uint32_t forward_ps(std::uint32_t chain_ps, std::uint32_t cycle_ps);

}  // namespace crosstalk::collectors
