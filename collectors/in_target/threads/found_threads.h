// SPDX-License-Identifier: Apache-2.0
// Finds threads that pthread_create or clone did not make (but the system call itself, or io_uring), or that had no
// room before, by looking at /proc now and then. Each gets one timer in its life, whose first tick makes it known
// (adopt_found_thread); a thread that never runs the program's code gets none. Signal-safe throughout.
#pragma once

#include <cstdint>

#include "collectors/in_target/threads/thread_place.h"

namespace crosstalk::in_target {

/// Looks, at most a few times a second, for new threads and for threads that ended unnoticed by the system call itself,
/// which are forgotten. Charges its time to the budget. Leaves the process alone if a tracer (a debugger, say) has
/// come, at whose signals the program would stop.
void find_threads(std::uint64_t now_ns);
/// Begins to observe the calling thread, after a tick of the timer that found it.
void adopt_found_thread(const ThreadPlace& place);
/// The next find_threads() looks at once.
void look_soon();
/// True if the last look had no time to judge all new threads. The next one goes on with them.
bool has_more_to_judge();
/// Forgets them in a forked child, which has none.
void found_threads_after_fork();

}  // namespace crosstalk::in_target
