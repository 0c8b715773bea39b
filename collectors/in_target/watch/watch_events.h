// SPDX-License-Identifier: Apache-2.0
// The watchpoint events of one thread: kept open, or opened for each watch. An open event costs its thread something at
// each context switch (0.8 us), even while it is disabled; opening and closing one that belongs to a running thread
// costs its opener some 40 us, moving one 17. So threads that switch seldom keep theirs, the others have them on
// demand.
#pragma once

#include <cstdint>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/sys/perf_events.h"

namespace crosstalk::in_target {

/// True if a thread's events may stay open, whose `switches` within `cpu_ns` of CPU time then cost `presence_cost_ns`
/// more each. They may for a small part of the `budget`, a fraction of CPU time; events that are open `already` may for
/// some more.
constexpr bool worth_keeping(std::uint64_t switches, std::uint64_t cpu_ns, double budget,
                             std::uint32_t presence_cost_ns, bool already) {
  constexpr double presence_share = 0.1;
  const double allowed = presence_share * (already ? 2 : 1) * budget * static_cast<double>(cpu_ns);
  return static_cast<double>(switches) * presence_cost_ns <= allowed;
}

/// Keeps the calling thread's events [first, first + count) open, which no watch is using, from now on. Returns 0, or
/// -errno of the first that could not be opened: the events before it are kept.
long keep_events(ThreadState& self, std::uint32_t first, std::uint32_t count);
/// From now on the thread has them on demand.
void part_with_events(ThreadState& thread, std::uint32_t first, std::uint32_t count);
/// It is done with these events, for good.
void forgo_events(ThreadState& self, std::uint32_t first, std::uint32_t count);
/// Closes the descriptors of a thread's events and alarm in a forked child: the events are the parent's, and stay.
void drop_events(ThreadState& thread);
/// Disables and closes the events of the calling thread, which is no longer watched. A forked child may hold copies of
/// the descriptors, which keep an event alive.
void end_events(ThreadState& self);
/// Sets event number `event` of a thread; -EBADF when it is not open. Safe from any thread, like the next two.
long set_event(ThreadState& thread, std::uint32_t event, const WatchPlace& place);
/// Sets the event as set_event() does, and opens it if the thread has it on demand.
long demand_event(ThreadState& thread, std::uint32_t event, const WatchPlace& place);
/// True if the thread has not said that it ends.
[[nodiscard]] bool lives(const ThreadState& thread);
/// True if it is armed, or was opened for a watch.
bool in_use(ThreadState& thread, std::uint32_t event);
/// Called when the watch is over: disables the event, or closes one that was opened for it.
long dismiss_event(ThreadState& thread, std::uint32_t event);
/// True if an alarm is worth while to end a thread's brief watches. It is a clock of its own, which makes each context
/// switch some 4 us dearer, more than armed watchpoints do, and it rings in user mode only. A thread that switches
/// often and is rarely in user mode would pay for it much longer than for the watch. Then the next sample ends the
/// watch.
constexpr bool worth_an_alarm(bool switches_often, double part_in_user_mode) {
  constexpr double least_part = 0.25;
  return !switches_often || part_in_user_mode >= least_part;
}

/// Makes the alarm of the calling thread ring once after so much of its CPU time, if that is worth while.
void set_alarm(ThreadState& self, std::uint64_t cpu_ns);
void end_alarm(ThreadState& self);
/// Closes the alarm of any thread unless it is set.
void close_idle_alarm(ThreadState& thread);
/// Ends the alarm if a sample comes first, at `now_ns`, and the alarm should have rung already.
void end_late_alarm(ThreadState& self, std::uint64_t now_ns);
/// For how long the alarm of the calling thread has been set up to now.
std::uint64_t alarm_time(const ThreadState& self, std::uint64_t now_ns);

}  // namespace crosstalk::in_target
