// SPDX-License-Identifier: Apache-2.0
// Threads of this process that did not come by pthread_create or clone (the system call itself, io_uring), or for which
// there was no room: found by looking at /proc now and then. Each gets one timer in its life, whose first tick makes it
// known (adopt_found_thread), and none if it never runs code of the program's. Signal-safe throughout.
#pragma once

#include <cstdint>

#include "collectors/in_target/threads/thread_place.h"

namespace crosstalk::in_target {

/// Looks, at most a few times a second, who has come and who has ended without our seeing it: those that
/// have ended by the system call itself are forgotten. The time that it takes is charged to the budget.
/// And has a tracer (a debugger, say) come, at whose signals the program would stop? Then it is left alone.
void find_threads(std::uint64_t now_ns);
/// The calling thread, which is not observed, has had a tick of the timer that found it.
void adopt_found_thread(const ThreadPlace& place);
/// The next find_threads() looks at once.
void look_soon();
/// Has the last look met more new threads than it took the time to judge? The next one goes on with them.
bool has_more_to_judge();
/// A forked child has none of them.
void found_threads_after_fork();

}  // namespace crosstalk::in_target
