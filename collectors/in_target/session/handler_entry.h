// SPDX-License-Identifier: Apache-2.0
// Where our signal handlers begin: on the thread's handler stack (sys/handler_stack.h), or at once on their way there.
#pragma once

#include <signal.h>

#include "collectors/in_target/sys/call_on_stack.h"

namespace crosstalk::in_target {

/// Calls `action` on the calling thread's handler stack; on the present one where it has none. Takes few of the
/// present stack's bytes: it may be the target's alternate stack, or one of a page.
void run_on_handler_stack(SignalAction action, int number, siginfo_t* info, void* context);

/// What is to be installed for `action`.
template <SignalAction action>
void on_handler_stack(int number, siginfo_t* info, void* context) {
  run_on_handler_stack(action, number, info, context);
}

}  // namespace crosstalk::in_target
