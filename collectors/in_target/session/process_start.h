// SPDX-License-Identifier: Apache-2.0
// The beginning of an observed process: its main thread, its record, its clocks. Normal context.
#pragma once

#include <cstdint>

#include "collectors/in_target/core/thread_state.h"

namespace crosstalk::in_target {

/// To the calling thread's ring.
void write_process_start(bool after_fork);
/// Begins the calling thread, which is the process's first one. Null: there is no room for it.
ThreadState* begin_main_thread();
/// Starts observing this process, whose runtime is configured and whose registry is empty. False: there is no room for
/// its thread.
bool begin_observing(bool after_fork);
/// Adds the CPU time of our start, since `begin_ns`, to the cost of observing. The budget does not pay for it, since it
/// does not go on: a brief program would not be watched at all.
void count_start(std::uint64_t begin_ns);

}  // namespace crosstalk::in_target
