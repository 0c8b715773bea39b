// SPDX-License-Identifier: Apache-2.0
// perf events on threads of another process: opened, enabled, moved. They end with their descriptors, which are this
// process's: when it dies, however it does, nothing is left in the target.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "collectors/observer/open_event.h"
#include "collectors/observer/perf_attributes.h"
#include "collectors/observer/perf_ring.h"

namespace crosstalk::observer {

/// Lets this process have as many descriptors as it may: each thread that is watched takes some.
void raise_descriptor_limit();

/// A disabled clock of thread `tid`. Errors: not_found (the thread is gone), permission, system; in one line, with the
/// remedy.
[[nodiscard]] Result<OpenEvent> open_clock(pid_t tid, const ClockSettings& settings);
/// True if this user may see other threads in the kernel. Asked of thread `tid`.
[[nodiscard]] bool kernel_allowed(pid_t tid);
/// Pages of a ring: a whole watch's accesses beside some samples of the clock fit, and a sample of each.
inline constexpr std::uint32_t usual_ring_pages = 32, least_ring_pages = 4;
/// Maps the ring of a clock, of so many pages (a power of two), or of fewer if the user cannot lock as much memory.
[[nodiscard]] Result<PerfRing> map_ring(const OpenEvent& clock, std::uint32_t pages);
void enable_event(const OpenEvent& event);
void set_event_period(const OpenEvent& event, std::uint64_t period);
/// Returns the clock's count: CPU time of its thread, nanoseconds, also after the thread's end.
[[nodiscard]] std::uint64_t read_clock(const OpenEvent& clock);

/// Opens an event that samples memory accesses, of a thread (`cpu` -1) or of a processor (`tid` -1), in the group of
/// `leader` if there is one. Errors as those of a clock.
[[nodiscard]] Result<OpenEvent> open_measuring(const perf_event_attr& attributes, pid_t tid, int cpu,
                                               const OpenEvent* leader);
/// Sends its records to the ring of the event `ring` from now on. False: the kernel refuses.
[[nodiscard]] bool write_into_ring(const OpenEvent& event, int ring);
struct EventCounts {
  std::uint64_t count = 0, enabled_ns = 0, running_ns = 0;
};
/// Returns the counts so far of an event with measuring_attributes(); zeros if it cannot be read.
[[nodiscard]] EventCounts read_counts(const OpenEvent& event);

/// Opens a disabled breakpoint of thread `tid` that writes into the ring of `clock`. Nothing if there is no debug
/// register for it, or no thread.
[[nodiscard]] std::optional<OpenEvent> open_breakpoint(pid_t tid, const WatchedPlace& place, const OpenEvent& clock);
/// Lets it report so many accesses; then the kernel switches it off.
void enable_breakpoint(const OpenEvent& breakpoint, std::uint32_t accesses);

}  // namespace crosstalk::observer
