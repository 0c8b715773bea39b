// SPDX-License-Identifier: Apache-2.0
// Finds the stack of a thread that we did not see begin by pthread_create.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

/// A thread's stack and libc's control block (`thread_pointer`); 0: not known.
struct ThreadPlace {
  std::uint64_t stack_low = 0, stack_high = 0, thread_pointer = 0;
};
/// Returns the place of the calling thread, which libc has made, at a stack pointer of its own. Signal-safe; reads
/// /proc once.
ThreadPlace place_of_libc_thread(std::uint64_t stack_pointer);

}  // namespace crosstalk::in_target
