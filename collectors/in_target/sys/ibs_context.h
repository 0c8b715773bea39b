// SPDX-License-Identifier: Apache-2.0
// A thread's context in our kernel module for IBS (kmod/crosstalk_ibs.h), handled as an event of perf's: a descriptor
// with a hidden number (perf_events.h), and a ring that is mapped as theirs (event_ring.h). The module sends no signal.
// All functions are signal-safe. Results are >= 0, or -errno, as those of perf_events.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/in_target/sys/perf_events.h"

namespace crosstalk::in_target {

/// Opens a stopped context of the calling thread that samples each `period` micro-operations, with a ring of so many
/// bytes of records. Closed as a clock is, also if this fails.
long open_ibs_context(std::uint64_t period, std::size_t ring_bytes, OwnedEvent& context);
long start_ibs_context(const OwnedEvent& context);
/// To be called before it is closed: a context lives as long as a child of a fork has a copy of its descriptor.
long stop_ibs_context(const OwnedEvent& context);
/// Its counts, and for how long it counted.
long read_ibs_counts(const OwnedEvent& context, EventCounts& counts);
long set_ibs_period(const OwnedEvent& context, std::uint64_t period);

}  // namespace crosstalk::in_target
