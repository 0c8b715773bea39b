// SPDX-License-Identifier: Apache-2.0
// Removes hand-overs that observation itself has split.
//
// A producer that stores two words of a line (a payload, then a flag) does so within nanoseconds; while watched, it
// takes a trap of microseconds at the first. A consumer that spins on the flag meanwhile reads it between the two
// stores: by the definition a false sharing (its bytes were not stored yet), followed at once by the true one that
// would have been the only one. The first of the two is an artefact of the trap and is not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/timeline/seen.h"

namespace crosstalk::attribution {

/// The longest time between two stores that a trap, its handler and the moving of a few watchpoints split, nanoseconds.
inline constexpr std::uint64_t longest_tear_ns = 200'000;

/// Drops each false communication i -> j whose successor in the timeline is a true one i -> j by a store of i within
/// `longest_tear_ns` of the first. Also drops a last one by the same two instructions as one so dropped, because the
/// end of the watch cut off its successor. Keeps the order. `communications` are in the order of their consumers'
/// accesses.
void remove_probe_effect(std::vector<SeenCommunication>& communications);

/// Drops communications whose store is known only from the opening sample if others are known from traps. Arming takes
/// some microseconds: a consumer may have made its first access unseen in that time, and its second one would be
/// blamed.
void prefer_watched_stores(std::vector<SeenCommunication>& communications);

}  // namespace crosstalk::attribution
