// SPDX-License-Identifier: Apache-2.0
// The entries of our signal handlers: on the thread's handler stack (sys/handler_stack.h), or changing to it at once.
#pragma once

#include <signal.h>

#include "collectors/in_target/sys/call_on_stack.h"

namespace crosstalk::in_target {

/// Calls `action` on the calling thread's handler stack, or on the present one if it has none. Takes few of the present
/// stack's bytes: it may be the target's alternate stack, or one of a page.
void run_on_handler_stack(SignalAction action, int number, siginfo_t* info, void* context);

/// The handlers to install. They clear the alignment-check flag, which the interrupted code may have set and our code
/// cannot run with, and go on in the functions below, which handlers.cpp defines. The kernel restores the flag at the
/// handler's return.
extern "C" __attribute__((visibility("hidden"))) void crosstalk_enter_trap(int number, siginfo_t* info, void* context);
extern "C" __attribute__((visibility("hidden"))) void crosstalk_enter_clock(int number, siginfo_t* info, void* context);
extern "C" __attribute__((visibility("hidden"))) void crosstalk_trap(int number, siginfo_t* info, void* context);
extern "C" __attribute__((visibility("hidden"))) void crosstalk_clock(int number, siginfo_t* info, void* context);

}  // namespace crosstalk::in_target
