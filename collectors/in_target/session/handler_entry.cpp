// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/handler_entry.h"

#include <ucontext.h>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/signals/alternate_stack.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

asm(R"(
  .pushsection .text
  .globl crosstalk_call_on_stack
  .hidden crosstalk_call_on_stack
  .type crosstalk_call_on_stack, @function
crosstalk_call_on_stack:
  .cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  movq %r8, %rsp
  call *%rcx
  movq %rbp, %rsp
  .cfi_def_cfa_register %rsp
  popq %rbp
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size crosstalk_call_on_stack, .-crosstalk_call_on_stack

  .macro enter_handler name, function
  .globl \name
  .hidden \name
  .type \name, @function
\name:
  .cfi_startproc
  endbr64
  pushfq
  .cfi_adjust_cfa_offset 8
  testl $0x40000, (%rsp)   # AC
  jz 1f
  andl $0xfffbffff, (%rsp)
  popfq
  .cfi_adjust_cfa_offset -8
  jmp \function
1:
  .cfi_adjust_cfa_offset 8
  leaq 8(%rsp), %rsp
  .cfi_adjust_cfa_offset -8
  jmp \function
  .cfi_endproc
  .size \name, .-\name
  .endm
  enter_handler crosstalk_enter_trap, crosstalk_trap
  enter_handler crosstalk_enter_clock, crosstalk_clock
  .popsection
)");

namespace {

// The kernel knows nothing of our stacks: each thread has one all the same, from its first tick on.
void run_unlent(ThreadState* self, SignalAction action, int number, siginfo_t* info, void* context) {
  const Runtime& r = runtime();
  const bool known = self != nullptr;
  HandlerStack* own = known ? self->handler_stack : nullptr;
  // A foreign signal may not come back from `action`; a tick, which makes a thread known, does.
  if (own == nullptr && (known || info->si_code == SI_TIMER) && r.observing.load(std::memory_order_relaxed)) {
    own = handler_stacks().take(r.pid, kernel_thread_id());
  }
  if (own == nullptr) {
    action(number, info, context);
    return;
  }
  if (known) {
    self->handler_stack = own;
  }
  crosstalk_call_on_stack(number, info, context, action, own->top());
  if (known) {
    return;
  }
  self = current_thread();
  if (self != nullptr) {
    self->handler_stack = own;
  } else {
    HandlerStacks::give(*own);
  }
}

// The kernel has put us elsewhere: this thread was found a moment ago, or the target has an alternate stack by a system
// call of its own.
__attribute__((noinline)) void run_elsewhere(SignalAction action, int number, siginfo_t* info, void* context) {
  ThreadState* self = current_thread();
  if (runtime().injected) {
    run_unlent(self, action, number, info, context);
    return;
  }
  if (self != nullptr && self->handler_stack != nullptr) {
    HandlerStack& own = *self->handler_stack;
    reinstate_handler_stack(own, *static_cast<ucontext_t*>(context));
    crosstalk_call_on_stack(number, info, context, action, own.top());
    return;
  }
  action(number, info, context);
  self = current_thread();
  if (self != nullptr && self->handler_stack == nullptr) {
    self->handler_stack = lend_handler_stack(*static_cast<ucontext_t*>(context));
  }
}

}  // namespace

void run_on_handler_stack(SignalAction action, int number, siginfo_t* info, void* context) {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));  // NOLINT: an address
  if (handler_stacks().at(here) != nullptr) {
    action(number, info, context);
  } else {
    run_elsewhere(action, number, info, context);
  }
}

}  // namespace crosstalk::in_target
