// SPDX-License-Identifier: Apache-2.0
// The watchpoint events of one thread: kept open, or opened for each watch. An open event costs its thread something at
// each context switch (0.8 us), even while it is disabled; opening and closing one that belongs to a running thread
// costs its opener some 40 us, moving one 17. So threads that switch seldom keep theirs, the others have them on
// demand.
#pragma once

#include <cstdint>

#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/threads/thread_state.h"

namespace crosstalk::in_target {

/// May a thread's events stay open, whose `switches` within `cpu_ns` of CPU time cost `presence_cost_ns` more each
/// then? They may for a small part of the `budget`, a fraction of CPU time; those that are open `already` for some
/// more.
constexpr bool worth_keeping(std::uint64_t switches, std::uint64_t cpu_ns, double budget,
                             std::uint32_t presence_cost_ns, bool already) {
  constexpr double presence_share = 0.1;
  const double allowed = presence_share * (already ? 2 : 1) * budget * static_cast<double>(cpu_ns);
  return static_cast<double>(switches) * presence_cost_ns <= allowed;
}

/// From now on the calling thread keeps its events [first, first + count), which no watch is using. 0, or -errno of
/// what could not be opened: the events before it are kept.
long keep_events(ThreadState& self, std::uint32_t first, std::uint32_t count);
/// From now on it has them on demand.
void part_with_events(ThreadState& self, std::uint32_t first, std::uint32_t count);
/// It is done with these events, for good.
void forgo_events(ThreadState& self, std::uint32_t first, std::uint32_t count);
/// Closes the descriptors of a thread's events and alarm in a forked child: the events are the parent's, and stay.
void drop_events(ThreadState& thread);
/// Disables and closes those of the calling thread, which is no longer watched. A forked child may hold copies of the
/// descriptors, and they keep an event as it was.
void end_events(ThreadState& self);
/// Sets event number `event` of a thread; -EBADF when it is not open. Safe from any thread, like the next two.
long set_event(ThreadState& thread, std::uint32_t event, const WatchPlace& place);
/// As set_event(), and opens the event where the thread has them on demand.
long demand_event(ThreadState& thread, std::uint32_t event, const WatchPlace& place);
/// Is it armed, or was it opened for a watch?
bool in_use(ThreadState& thread, std::uint32_t event);
/// The watch is over: disables the event, or closes one that was opened for it.
long dismiss_event(ThreadState& thread, std::uint32_t event);
/// Has the alarm of the calling thread ring once after so much of its CPU time.
void set_alarm(ThreadState& self, std::uint64_t cpu_ns);
void end_alarm(ThreadState& self);

}  // namespace crosstalk::in_target
