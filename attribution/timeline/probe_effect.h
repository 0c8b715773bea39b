// SPDX-License-Identifier: Apache-2.0
// Hand-overs that observing itself has torn apart.
//
// A producer that stores two words of a line (a payload, then a flag) does so within nanoseconds; while watched,
// it takes a trap of microseconds at the first. A consumer that spins on the flag meanwhile reads it between
// the two stores: by the definition a false sharing (its bytes were not stored yet), followed at once by the true
// one that would have been all. The first of the two is an artefact of the trap and is not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/timeline/seen.h"

namespace crosstalk::attribution {

/// How far apart a trap, its handler and the moving of a few watchpoints can tear two stores, nanoseconds.
inline constexpr std::uint64_t longest_tear_ns = 200'000;

/// Drops each false communication i -> j whose successor in the timeline is a true one i -> j by a store of i within
/// `longest_tear_ns` of the first; and a last one by the same two instructions as one so dropped, whose successor the
/// end of the watch cut off. Order is kept. `communications` are in the order of their consumers' accesses.
void remove_probe_effect(std::vector<SeenCommunication>& communications);

/// Drops communications whose store is only known from the opening sample, where others are known from traps: arming
/// takes some microseconds, in which a consumer may have made its first access unseen, and its second is blamed.
void prefer_watched_stores(std::vector<SeenCommunication>& communications);

}  // namespace crosstalk::attribution
