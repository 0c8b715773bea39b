// SPDX-License-Identifier: Apache-2.0
// The kernel has a stack of ours (sys/handler_stack.h) as the alternate stack of each observed thread, so that our
// signals never need the target's. The target sees its own wishes:
//   sigaltstack  keeps the target's stack and reports it, after the kernel has said if it accepts it;
//   handlers     of its own with SA_ONSTACK are entered by a stub (signals/handler_stubs.h), which moves the kernel's
//                frame from our stack to its normal place: the target's alternate stack or, if it has none, the
//                interrupted one. The context shows the target's stack; on return, ours is put back.
// All state is on our stacks, and the stack of a frame, or the kernel's alternate stack, identifies it. So fork, vfork,
// seccomp and threads that were never seen need no care. A target that calls the kernel itself gets its wish: its stack
// replaces ours, and the kernel places its handlers' frames.
//
// Known differences: the context of handlers without SA_ONSTACK names our stack; SS_AUTODISARM does not act in them;
// and a signal that arrives in the microsecond in which another one's frame is moved is handled on our stack.
#pragma once

#include <signal.h>

#include <cstdint>

#include "collectors/in_target/sys/handler_stack.h"

namespace crosstalk::in_target {

/// False: the processor checks return addresses against a shadow stack, which a moved frame would not match. No stack
/// is lent then. Asks the kernel at each call.
bool frames_can_move();

/// Gives the calling thread a stack of ours, if it can have one. Normal context.
HandlerStack* lend_handler_stack();
/// Does the same in a signal handler of ours, whose return makes it the thread's alternate stack. Null: not now.
HandlerStack* lend_handler_stack(ucontext_t& context);
/// Called for a handler that returns to `context` and was not on the thread's stack `own`. Puts the stack in place
/// again if an older one has been restored; leaves a stack that the target has set by a system call of its own.
void reinstate_handler_stack(HandlerStack& own, ucontext_t& context);
/// Gives the calling thread, which ends, the alternate stack that it believes it has. Normal context.
void take_handler_stack_back();
/// In a forked child, before it lends any.
void handler_stacks_after_fork();

/// Leaves our handler for one of the target's, which returns to the interrupted code. On our stack or any other.
[[noreturn]] void enter_target_handler(void (*handler)(int, siginfo_t*, void*), bool on_alternate_stack, int number,
                                       ucontext_t& context);

}  // namespace crosstalk::in_target
