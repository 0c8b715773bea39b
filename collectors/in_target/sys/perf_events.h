// SPDX-License-Identifier: Apache-2.0
// Opens, hides above the target's limit (hidden_numbers.h), moves and closes perf_event descriptors in the target's
// table. Leaves alone a number that the target has closed, and perhaps reuses. All functions are signal-safe. Results
// are >= 0, or -errno; opening gives -EMFILE if the target's limit has no room for ours, and -EAGAIN if another try may
// succeed.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>

#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/watch_policy/runs.h"

namespace crosstalk::in_target {

using watch_policy::WatchMode;

/// A descriptor of ours in the target's table, with the event's kernel id (of our module's context: the device's
/// number): a target that closes it and reuses its number must not see us close or move what is now its own.
struct OwnedEvent {
  int fd = 0;  // 0: none (all-zero states need no bytes in the library's file)
  std::uint64_t id = 0;
  std::uint64_t mark = 0;  // si_perf_data of its signals
};

/// Marks of our events in si_perf_data. Constant for a descriptor: some kernels change them with
/// PERF_EVENT_IOC_MODIFY_ATTRIBUTES and some do not.
inline constexpr std::uint64_t watch_mark = 0x63726f7300000000;  // + word index
inline constexpr std::uint64_t clock_mark = 0x63726f7400000000;
inline constexpr std::uint64_t alarm_mark = 0x63726f7500000000;

/// The place and mode of a data watchpoint: `length` 1, 2, 4 or 8 bytes at `address`, aligned to it. The default is
/// nowhere (a disabled event's address; page zero is never mapped).
struct WatchPlace {
  std::uint64_t address = 0;
  std::uint32_t length = 8;
  WatchMode mode = WatchMode::off;
};

/// Opens a data watchpoint on the thread `tid`, which may be another process's; 0: the calling one. It is disabled: a
/// thread that is trapped moves the event by the descriptor, which must be known by then.
long open_watch_event(std::int32_t tid, std::uint32_t word, OwnedEvent& event);
/// Moves a watchpoint; -EBADF when the descriptor is no longer ours.
long set_watch_event(const OwnedEvent& event, const WatchPlace& place);
/// Opens and starts a task clock with a synchronous SIGTRAP on the thread `tid` of this process.
long open_clock_event(std::int32_t tid, std::uint64_t period_ns, OwnedEvent& event);
/// As close_event(), of such a clock.
void close_clock_event(OwnedEvent& event);
/// Sets a clock's period in nanoseconds, or another event's in its own unit.
long set_clock_period(const OwnedEvent& event, std::uint64_t period_ns);
/// Opens an event that counts or samples, whose attributes are complete but for its period, on the thread `tid` of this
/// process, stopped. It is counted as a clock. `leader`: of its group; null: it is in none. Closed as a clock is.
long open_measuring_event(const perf_event_attr& attr, std::int32_t tid, const OwnedEvent* leader, OwnedEvent& event);
long enable_event(const OwnedEvent& event);
/// Opens another descriptor that costs its thread what a clock does. Closed as a clock is.
long open_like_clock(Opener open, OwnedEvent& event);
/// ioctl(); -EBADF when the descriptor is no longer ours.
long control(const OwnedEvent& event, unsigned long request, const void* argument);
/// Sends the event's samples to the ring of another event of the same thread.
long write_into_ring_of(const OwnedEvent& event, const OwnedEvent& owner);
/// The count of an event that was opened with the format of both times, and for how long it was enabled and ran. -EBADF
/// when the descriptor is no longer ours.
struct EventCounts {
  std::uint64_t count = 0, enabled_ns = 0, running_ns = 0;
};
long read_counts(const OwnedEvent& event, EventCounts& counts);
/// Opens a stopped alarm on the calling thread. Once started, it raises a synchronous SIGTRAP each time that so much of
/// its CPU time has passed, until it is stopped. Only the thread itself may start and stop it.
long open_alarm_event(OwnedEvent& event);
long start_alarm(const OwnedEvent& event, std::uint64_t cpu_ns);
long stop_alarm(const OwnedEvent& event);
/// Closes the descriptor if it is still ours; of several callers at once, one does.
void close_event(OwnedEvent& event);

/// Sets watchpoints from now on at addresses that nobody accesses, for a test (collectors/breakpoint_address.h).
void lead_watchpoints_astray(bool on);

/// Switches events off before they are closed, or not. A child that the program has forked may have copies of
/// descriptors, by which an event lives on, and its signals must not come once our handlers are gone. Such a child
/// itself must not do so: it would switch off its parent's events.
void switch_off_before_closing(bool on);

/// How many events this process has open now. As long as there are any on the machine, and for a second more, the
/// kernel keeps accounts at the context switches of threads that have or had one.
std::uint32_t events_open();
/// The number of open clock events among these: they are open for as long as their threads live.
std::uint32_t clock_events_open();
/// Returns the time when the latest event was closed, CLOCK_MONOTONIC; 0: none was.
std::uint64_t last_event_closed_ns();
/// In a forked child, which has closed its copies of the parent's.
void forget_events_open();

}  // namespace crosstalk::in_target
