// SPDX-License-Identifier: Apache-2.0
// Leaving a process alone for good: it goes on as if we had never been there.
#pragma once

#include <cstdint>

namespace crosstalk::in_target {

enum class StepAside : std::uint8_t {
  now,           // threads that are in a handler of ours finish it: any context
  without_trace  // when it returns, no thread is in our code, or will be: normal context, some milliseconds
};

/// Ends the observation of this process: deletes the timers and closes the events of all its threads. One of several
/// callers does it, and those that want no trace wait for it. `code` and `text` are a message to the user; null: none.
/// From then on nothing of ours makes a system call.
void step_aside(const char* code, const char* text, StepAside how);

/// Begins a new session in a process that a session has left: forgone facilities may be used again. Normal context.
void forget_steps_aside();
/// Does without SIGTRAP from now on: no watchpoint, and clocks are POSIX timers. For good, any context.
void forgo_traps(const char* code, const char* text);
/// Does without watchpoints: no debug register of any thread is ours when it returns. For good. Normal context.
void forgo_watchpoints(const char* code, const char* text);
/// Does without descriptors of any kind, as above.
void forgo_descriptors(const char* code, const char* text);
/// Does without the vdso: no thread is in it for us when it returns. For good. Normal context.
void forgo_vdso();
/// Does without POSIX timers: threads have perf clocks, or none. For good. False: there were none. Any context.
bool forgo_timers(const char* code, const char* text);

}  // namespace crosstalk::in_target
