// SPDX-License-Identifier: Apache-2.0
// Lets one observed process use watchpoint events on another's threads.
//
// A thread has at most one event for each debug register of ours, and its slot in the arena names the holder of the
// descriptor. A thread that opens a watch also opens missing events on threads of other processes. Another process
// moves an event by a copy of the descriptor that it takes for a moment (pidfd_getfd). This arms a thread without a
// signal and without its help, so a thread that is blocked in the kernel stays blocked.
//
// Both need what ptrace needs: the same user, or CAP_SYS_PTRACE, and permission by kernel.yama.ptrace_scope.
//
// All functions are signal-safe. Results are >= 0, or -errno.
#pragma once

#include <cstdint>

#include "collectors/in_target/sys/perf_events.h"
#include "profile/arena.h"

namespace crosstalk::in_target {

/// The right to open an event of a thread. False: it is open, or about to be.
bool claim_event(profile::ThreadWatchpoints& thread, std::uint32_t event);
/// Called by the holder: publishes the event's descriptor; `held` without a descriptor: the event could not be opened.
void publish_event(profile::ThreadWatchpoints& thread, std::uint32_t event, const OwnedEvent& held);
/// The holder is about to close it.
void withdraw_event(profile::ThreadWatchpoints& thread, std::uint32_t event, const OwnedEvent& held);
/// True if another process holds it.
bool held_elsewhere(const profile::ThreadWatchpoints& thread, std::uint32_t event);
bool any_held_elsewhere(const profile::ThreadWatchpoints& thread);
/// Sets an event of any holder. -ESRCH: none holds it; -EBUSY: it is about to be opened.
long set_held_event(profile::ThreadWatchpoints& thread, std::uint32_t event, const WatchPlace& place);

/// Sets an event of another process's thread for the watch `watch`; opens it if necessary. Opened events are held until
/// release_remote_events(), with one lock for all calls of an `event / words_per_slot`.
long arm_remote_thread(profile::ThreadSlot& thread, std::uint32_t event, std::uint32_t watch, const WatchPlace& place);
/// Closes what arm_remote_thread() has opened for that pair of events, but for those that others use by now: they stay
/// until the next call.
void release_remote_events(std::uint32_t pair);
/// Closes all of that pair, under the same lock, also those that others use: they open events of their own when they
/// arm the thread next.
void forgo_remote_events(std::uint32_t pair);
/// True if there are any to be released.
bool holds_remote_events(std::uint32_t pair);
/// Closes a forked child's copies of the descriptors. The events do not change.
void drop_remote_events();

}  // namespace crosstalk::in_target
