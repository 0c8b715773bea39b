// SPDX-License-Identifier: Apache-2.0
// Threads are known to end by a pthread key: its destructor runs on return, pthread_exit and cancellation alike.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

/// Makes the key. Normal context, once.
void end_threads_with_a_key();
/// Also reports the end of the calling thread, whose beginning we did not see. `thread_pointer`: as
/// place_of_libc_thread() has it. If that is 0, or libc has no room for the key without allocating, find_threads()
/// detects the end instead. Signal-safe.
void tell_end_of_calling_thread(std::uint64_t thread_pointer);

}  // namespace crosstalk::in_target
