// SPDX-License-Identifier: Apache-2.0
// perf_event descriptors in the target's table: opened, hidden above its limit, moved, closed with care.
// All functions are signal-safe. Results are >= 0, or -errno.
#pragma once

#include <cstdint>

#include "collectors/in_target/thread_state.h"

namespace crosstalk::in_target {

/// Marks of our events in si_perf_data. Constant for a descriptor: some kernels change them with
/// PERF_EVENT_IOC_MODIFY_ATTRIBUTES and some do not.
inline constexpr std::uint64_t watch_mark = 0x63726f7300000000;  // + word index
inline constexpr std::uint64_t clock_mark = 0x63726f7400000000;
inline constexpr std::uint64_t alarm_mark = 0x63726f7500000000;

/// Makes the kernel's table of descriptors as large as our hidden ones will need, while the process has one
/// thread: later the kernel waits milliseconds (an RCU grace period) for the others. `any_fd`: any open one.
void reserve_descriptors(int any_fd);

/// Opens a disabled data watchpoint on the calling thread.
long open_watch_event(std::uint32_t word, OwnedEvent& event);
/// Moves a watchpoint: `length` 1, 2, 4 or 8 bytes at `address`, aligned to it.
long set_watch_event(const OwnedEvent& event, std::uint64_t address, std::uint32_t length, WatchMode mode);
/// Opens and starts a task clock with a synchronous SIGTRAP on the calling thread.
long open_clock_event(std::uint64_t period_ns, OwnedEvent& event);
long set_clock_period(const OwnedEvent& event, std::uint64_t period_ns);
/// Opens a stopped alarm on the calling thread: once started, one synchronous SIGTRAP after so much of its CPU time,
/// and another each time that passes again, until it is stopped. Only the thread itself may start and stop it.
long open_alarm_event(OwnedEvent& event);
long start_alarm(const OwnedEvent& event, std::uint64_t cpu_ns);
long stop_alarm(const OwnedEvent& event);
/// Closes the descriptor if it is still ours.
void close_event(OwnedEvent& event);

}  // namespace crosstalk::in_target
