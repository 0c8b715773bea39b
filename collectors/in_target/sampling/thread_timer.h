// SPDX-License-Identifier: Apache-2.0
// POSIX timers on threads' CPU time. The kernel counts each against the user's limit of pending signals
// (RLIMIT_SIGPENDING), which the program's own timers and queued signals need, too. Ours take a small part of the free
// number, and none if that is low. All signal-safe.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

/// Sends the clock signal to the thread `tid` of this process once it has used `first_ns` more of CPU time, and then
/// each time it has used `period_ns`. Returns the timer's id, or -errno: -EAGAIN if the program may need the room
/// itself.
long start_thread_timer(std::int32_t tid, std::uint64_t first_ns, std::uint64_t period_ns);
/// 0 or -errno.
long set_thread_timer(std::int32_t id, std::uint64_t first_ns, std::uint64_t period_ns);
/// A signal that it has sent may still come.
void delete_thread_timer(std::int32_t id);
/// No timer is started any more. False: so it was before.
bool forgo_thread_timers();
/// Timers may be started again: another session begins.
void allow_thread_timers();
/// A forked child has none.
void forget_thread_timers();

}  // namespace crosstalk::in_target
