// SPDX-License-Identifier: Apache-2.0
// A thread's clock: a POSIX CPU timer (costs nothing at context switches, no finer than the kernel's tick)
// or a perf task clock (any period, and a few microseconds at each context switch). All signal-safe.
#pragma once

#include <cstdint>

#include "collectors/in_target/core/thread_state.h"

namespace crosstalk::in_target {

/// Starts the calling thread's clock as the configuration and the rights allow.
void start_clock(ThreadState& self);
void stop_clock(ThreadState& self);
/// Notes the CPU time and the context switches of a thread that has ended: future ones may be like it.
void note_life(std::uint64_t cpu_ns, std::uint64_t switches);
/// Notes the time of a sample's handler.
void note_handler(std::uint64_t took_ns);
/// A forked child's threads need not be like its parent's.
void forget_lives();
/// Changes a thread's clock to the other kind, or stops it if there is none. Any thread may call it.
void forgo_perf_clock(ThreadState& thread);
void forgo_posix_clock(ThreadState& thread);
/// Every so many samples: charges presence, and changes the kind of clock, its period, or whether watch events stay
/// open, as the budget demands.
void review_clock(ThreadState& self, std::uint64_t cpu_ns);

}  // namespace crosstalk::in_target
