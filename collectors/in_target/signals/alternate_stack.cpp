// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/signals/alternate_stack.h"

#include <sys/syscall.h>
#include <ucontext.h>

#include <cerrno>
#include <cstring>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/signals/handler_stubs.h"
#include "collectors/in_target/sys/kernel_signals.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

// Assembly, in handler_stubs.cpp.
extern "C" {
[[noreturn]] void crosstalk_jump_to_handler(int number, SignalFrame* frame, std::uint64_t handler);
void crosstalk_return();
void crosstalk_return_from_handler();
SignalHandler crosstalk_handler_of(std::uint32_t stub);
}

namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }  // NOLINT

long ask_kernel(const stack_t* wanted, stack_t* old) { return system_call(SYS_sigaltstack, wanted, old); }

AlternateStack shown_by(const KernelContext& context) {
  return {context.stack_base, context.stack_bytes, context.stack_flags};
}

void show(KernelContext& context, const AlternateStack& stack) {
  context.stack_base = stack.base;
  context.stack_bytes = stack.bytes;
  context.stack_flags = stack.flags;
}

long install(const AlternateStack& stack) {
  stack_t wanted{};
  wanted.ss_sp = reinterpret_cast<void*>(stack.base);  // NOLINT: an address
  wanted.ss_size = stack.bytes;
  wanted.ss_flags = static_cast<int>(stack.bytes == 0 ? stack_is_disabled : stack.flags);
  return ask_kernel(&wanted, nullptr);
}

/// Returns the stack of ours that the kernel has as the calling thread's; sets `now` to the kernel's answer.
HandlerStack* lent_stack(stack_t& now) {
  now = {};
  ask_kernel(nullptr, &now);
  return now.ss_size != 0 ? handler_stacks().at(address_of(now.ss_sp) + 1) : nullptr;
}

// ---- moving frames

/// Kills the thread by SIGSEGV, as the kernel does if a frame has no room. Lets the frame return to address 0 with the
/// signal blocked. This needs no system call, which the target may have forbidden.
void return_to_death(SignalFrame& frame) {
  frame.context.registers[REG_RIP] = 0;
  frame.context.mask |= bit_in_mask(SIGSEGV);
}

/// Moves a frame from our stack to its place without us. Null: it has no room there.
SignalFrame* moved(const SignalFrame& from, HandlerStack& own, bool wants_alternate) {
  const auto* state = reinterpret_cast<const void*>(from.context.vector_state);  // NOLINT: an address
  const std::uint64_t state_bytes = state != nullptr ? vector_state_bytes(state) : 0;
  const AlternateStack wanted = own.target_stack();
  const FramePlace place = frame_place(wanted, wants_alternate, from.context.registers[REG_RSP], state_bytes);
  if (!place.fits) {
    return nullptr;
  }
  auto& to = *reinterpret_cast<SignalFrame*>(place.frame);  // NOLINT: an address
  own.placing.store(true, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  memcpy(&to, &from, kernel_frame_bytes);
  if (state != nullptr) {
    memcpy(reinterpret_cast<void*>(place.vector_state), state, state_bytes);  // NOLINT: an address
    to.context.vector_state = place.vector_state;
  }
  to.return_address = reinterpret_cast<std::uint64_t>(&crosstalk_return_from_handler);  // NOLINT: an address
  to.owner = address_of(&own);
  show(to.context, wanted);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  own.placing.store(false, std::memory_order_relaxed);
  if ((wanted.flags & stack_disarms_itself) != 0) {
    own.set_target_stack({0, 0, stack_is_disabled});
  }
  return &to;
}

struct Entry {
  SignalFrame* frame;
  std::uint64_t handler;
};

Entry place_frame(SignalFrame& frame, std::uint64_t handler, int number, bool wants_alternate) {
  HandlerStack* own = handler_stacks().at(address_of(&frame));
  if (own == nullptr) {
    return {&frame, handler};  // the kernel has put it at the place that the target expects
  }
  SignalFrame* to = nullptr;
  if (handler_stacks().at(frame.context.registers[REG_RSP]) == nullptr) {
    to = moved(frame, *own, wants_alternate);
  } else if (!own->placing.load(std::memory_order_relaxed) || (number != SIGSEGV && number != SIGBUS)) {
    to = &frame;  // it came while another frame was about to be moved, and nobody may leave that one behind
  }
  if (to == nullptr) {
    return_to_death(frame);
    return {&frame, reinterpret_cast<std::uint64_t>(&crosstalk_return)};  // NOLINT: an address
  }
  return {to, handler};
}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"), used)) Entry crosstalk_place_frame(SignalFrame* frame, std::uint32_t stub,
                                                                        int number) {
  return place_frame(*frame, reinterpret_cast<std::uint64_t>(crosstalk_handler_of(stub)), number, true);  // NOLINT
}

/// A handler of the target's returns, to `context`, which it was entered with in a frame that was moved.
__attribute__((visibility("hidden"), used)) void crosstalk_before_return(KernelContext* context) {
  const auto* frame =
      reinterpret_cast<const SignalFrame*>(address_of(context) - offsetof(SignalFrame, context));  // NOLINT
  auto& own = *reinterpret_cast<HandlerStack*>(frame->owner);                                      // NOLINT
  const std::uint64_t interrupted = context->registers[REG_RSP];
  own.set_target_stack(after_return(own.target_stack(), shown_by(*context), interrupted));
  show(*context, own.bounds());
}

}  // extern "C"

void enter_target_handler(void (*handler)(int, siginfo_t*, void*), bool on_alternate_stack, int number,
                          ucontext_t& context) {
  auto& frame =
      *reinterpret_cast<SignalFrame*>(address_of(&context) - offsetof(SignalFrame, context));  // NOLINT: an address
  const auto address = reinterpret_cast<std::uint64_t>(handler);                               // NOLINT: an address
  const Entry entry = place_frame(frame, address, number, on_alternate_stack);
  crosstalk_jump_to_handler(number, entry.frame, entry.handler);
}

// ---- lending

bool frames_can_move() {
  constexpr int shadow_stack_status = 0x5005;  // ARCH_SHSTK_STATUS
  std::uint64_t features = 0;
  return system_call(SYS_arch_prctl, shadow_stack_status, &features) < 0 || features == 0;
}

HandlerStack* lend_handler_stack() {
  if (!lends_stacks()) {
    return nullptr;  // the first signal takes one
  }
  stack_t now;
  if (HandlerStack* own = lent_stack(now); own != nullptr) {
    return own;  // a forked child has its parent's
  }
  if ((now.ss_flags & SS_ONSTACK) != 0 || !frames_can_move()) {
    return nullptr;
  }
  HandlerStack* own = handler_stacks().take(kernel_process_id(), kernel_thread_id());
  if (own == nullptr) {
    return nullptr;
  }
  if (now.ss_size != 0) {
    own->set_target_stack({address_of(now.ss_sp), now.ss_size, static_cast<std::uint32_t>(now.ss_flags)});
  }
  if (install(own->bounds()) < 0) {
    HandlerStacks::give(*own);
    return nullptr;
  }
  return own;
}

HandlerStack* lend_handler_stack(ucontext_t& context) {
  auto& changed = reinterpret_cast<KernelContext&>(context);  // NOLINT: glibc's begins like the kernel's
  const AlternateStack now = shown_by(changed);
  if (HandlerStack* own = handler_stacks().at(now.base + 1); own != nullptr && now.bytes != 0) {
    return own;
  }
  if (runs_on(now, changed.registers[REG_RSP]) || !frames_can_move()) {
    return nullptr;
  }
  HandlerStack* own = handler_stacks().take(kernel_process_id(), kernel_thread_id());
  if (own != nullptr) {
    own->set_target_stack(now);
    show(changed, own->bounds());
  }
  return own;
}

void reinstate_handler_stack(HandlerStack& own, ucontext_t& context) {
  auto& changed = reinterpret_cast<KernelContext&>(context);  // NOLINT: glibc's begins like the kernel's
  const AlternateStack wanted = own.target_stack();
  if (changed.stack_base == wanted.base && changed.stack_bytes == wanted.bytes) {
    show(changed, own.bounds());
  }
}

void take_handler_stack_back() {
  stack_t now;
  HandlerStack* own = lent_stack(now);
  if (own != nullptr && install(own->target_stack()) >= 0) {
    HandlerStacks::give(*own);
  }
}

void handler_stacks_after_fork() {
  stack_t now;
  HandlerStack* kept = lent_stack(now);
  handler_stacks().after_fork(kept, kernel_thread_id());
}

// ---- sigaltstack

namespace {

/// Asks the kernel if it accepts `asked`, and then gives it our stack again. No handler may run meanwhile on a stack
/// that is too small: signals are blocked, except SIGTRAP, which kills on older kernels if blocked.
long set_target_stack(HandlerStack& own, const stack_t& asked) {
  const bool block = observing();  // afterwards a filter may be in force, which allows the target's calls
  const std::uint64_t most = ~bit_in_mask(SIGTRAP);
  std::uint64_t before = 0;
  if (block) {
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, &most, &before, sizeof before);
  }
  const long result = ask_kernel(&asked, nullptr);
  if (result >= 0) {
    own.set_target_stack(
        accepted({address_of(asked.ss_sp), asked.ss_size, static_cast<std::uint32_t>(asked.ss_flags)}));
    install(own.bounds());
  }
  if (block) {
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  }
  return result;
}

long change_alternate_stack(const stack_t* asked, stack_t* old, std::uint64_t stack_pointer) {
  stack_t now;
  HandlerStack* own = lent_stack(now);
  if (own == nullptr) {
    return ask_kernel(asked, old);
  }
  const AlternateStack before = own->target_stack();
  long result = 0;
  if (asked != nullptr) {
    const bool other_process = observing() && attached_pid() != kernel_process_id();
    if (runs_on(before, stack_pointer)) {
      return -EPERM;
    }
    // A vfork child shares our memory, and not its parent's alternate stack.
    result = other_process ? ask_kernel(asked, nullptr) : set_target_stack(*own, *asked);
  }
  if (result >= 0 && old != nullptr) {
    result = ask_kernel(nullptr, old);  // it knows whether that can be written
    if (result >= 0) {
      old->ss_sp = reinterpret_cast<void*>(before.base);  // NOLINT: an address
      old->ss_size = before.bytes;
      old->ss_flags = static_cast<int>(reported_flags(before, stack_pointer));
    }
  }
  return result;
}

}  // namespace

CROSSTALK_INTERPOSE(int, wrap_sigaltstack, "sigaltstack", (const stack_t*, stack_t*));
int wrap_sigaltstack(const stack_t* asked, stack_t* old) {
  const long result = change_alternate_stack(asked, old, address_of(__builtin_frame_address(0)));
  if (result < 0) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return 0;
}

}  // namespace crosstalk::in_target
