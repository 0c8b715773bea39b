// SPDX-License-Identifier: Apache-2.0
// The history of a watched line: derives communications and invalidations by their definition from the sample that
// opened a watch and the traps that followed. A pure function of rows.
//
// communication i -> j: an access by j to a line whose most recent store was by i != j and came after j's own
//   previous access (or j has none). True sharing if j's access overlaps a byte that i stored since then.
// invalidation: a store to a line that others have only read since its last store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "attribution/timeline/address_space.h"
#include "attribution/timeline/line_bytes.h"
#include "attribution/timeline/seen.h"
#include "profile/model.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

/// The instruction that ends at run-time address `ip`, if it is known and touches memory.
using AccessLookup = std::function<std::optional<symbolizer::MemoryAccess>(Moment moment, std::uint64_t ip)>;

/// Returns a stack that shows the callers of a trap that has no stack copy; 0: none.
using CallersLookup = std::function<StackId(const profile::TrapRow& trap)>;

/// The access of the sample that opened the watch, already made or not; `bytes` may be empty.
[[nodiscard]] AccessPoint sampled_access(const profile::WatchRow& watch);

/// `traps` are those of `watch` by ascending sequence; ignores others, repeated and out-of-range ones. At a gap in the
/// sequence it forgets the state of the line, because a missing trap may have been anyone's store. An access
/// of unknown kind can be a consumer, but not a producer.
[[nodiscard]] OwnershipTimeline ownership_timeline(const profile::WatchRow& watch,
                                                   std::span<const profile::TrapRow> traps,
                                                   std::span<const profile::ThreadRow> threads,
                                                   const AccessLookup& access_before,
                                                   const CallersLookup& callers = {});

/// Bytes of `line` that an instruction touched, from the registers after it; nullopt if they do not tell. `ip` is the
/// address after the instruction; `thread_pointer` 0 means unknown.
[[nodiscard]] std::optional<LineBytes> touched_bytes(const symbolizer::MemoryAccess& access, const Registers& registers,
                                                     std::uint64_t ip, std::uint64_t thread_pointer,
                                                     std::uint64_t line);

}  // namespace crosstalk::attribution
