// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/handlers.h"

#include <errno.h>
#include <signal.h>
#include <ucontext.h>

#include <cstring>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/sampling.h"
#include "collectors/in_target/session/handler_entry.h"
#include "collectors/in_target/signals/alternate_stack.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/kernel_signals.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/signal_registers.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/found_threads.h"
#include "collectors/in_target/threads/step_aside.h"
#include "collectors/in_target/threads/threads.h"
#include "collectors/in_target/watch/admission.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {
namespace {

constexpr int trap_perf = 6;             // TRAP_PERF: si_code of a perf event with sigtrap
constexpr std::uint32_t trap_async = 1;  // TRAP_PERF_FLAG_ASYNC: raised while blocked, the registers are not its own

// The part of siginfo that glibc 2.36 has no names for (asm-generic/siginfo.h, _sigfault._perf).
struct PerfFault {
  std::uint8_t common[16];
  std::uint64_t address;
  std::uint64_t data;
  std::uint32_t type;
  std::uint32_t flags;
};
static_assert(sizeof(PerfFault) == 40);

// Does the kernel's default action.
void die_of(int number, const siginfo_t* info) {
  set_kernel_action(number, {});
  // Blocked until the handler returns, then fatal.
  system_call(SYS_rt_tgsigqueueinfo, kernel_process_id(), kernel_thread_id(), number, info);
}

// The last action of a handler of ours: the target's handler may leave by siglongjmp(), and libc's by the unwinding of
// a cancelled thread.
void hand_to_target(int number, siginfo_t* info, void* context, const KernelAction& wish) {
  const auto disposition = reinterpret_cast<std::uintptr_t>(wish.handler);
  if (disposition == reinterpret_cast<std::uintptr_t>(SIG_DFL)) {
    die_of(number, info);
    return;
  }
  if (disposition == reinterpret_cast<std::uintptr_t>(SIG_IGN)) {
    if (number == SIGTRAP && info->si_code > 0) {  // the kernel does not let a fault be ignored
      die_of(number, info);
    }
    return;
  }
  std::uint64_t mask = wish.mask | static_cast<ucontext_t*>(context)->uc_sigmask.__val[0];
  if ((wish.flags & SA_NODEFER) == 0) {
    mask |= bit_in_mask(number);
  }
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
  // The handler may take one argument or three. We do not call it: it would find our stack, and our frames below its
  // own.
  enter_target_handler(wish.handler, (wish.flags & SA_ONSTACK) != 0, number, *static_cast<ucontext_t*>(context));
}

KernelAction trap_wish() {
  const struct sigaction& wish = *target_trap_action();
  KernelAction action;
  action.handler = wish.sa_sigaction;  // a union with sa_handler
  action.flags = static_cast<std::uint64_t>(wish.sa_flags);
  action.mask = wish.sa_mask.__val[0];
  return action;
}

bool session_over(std::uint64_t now_ns) {
  constexpr std::uint64_t patience_ns = 3'000'000'000;
  const auto* header = runtime().arena.header;
  if (header->state.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(profile::SessionState::running)) {
    return true;
  }
  const std::uint64_t beat = header->heartbeat_ns.load(std::memory_order_relaxed);
  return now_ns > beat + patience_ns && system_call(SYS_kill, header->recorder_pid, 0) == -ESRCH;
}

// If we were brought in late, masks are left alone. A watchpoint whose signal is blocked would leave the signal
// pending, for any code that waits for signals: so a thread is not watched while it blocks it.
void follow_mask(ThreadState& self, std::uint64_t mask) {
  const bool blocked = (mask & bit_in_mask(SIGTRAP)) != 0;
  if (blocked != self.blocks_traps) {
    self.blocks_traps = self.watch_tried = blocked;
    if (blocked) {
      end_watching(self);
    }
  }
}

// The one place where a signal of either kind of clock becomes a sample.
void on_tick(ucontext_t& context, std::int32_t timer) {
  Runtime& r = runtime();
  if (!r.observing.load(std::memory_order_relaxed)) {
    return;
  }
  ThreadState* self = current_thread();
  if (self == nullptr) {
    // In a process that ran before us nearly all threads are found so. Otherwise raw clone() made them: their stacks
    // are not known, and their thread pointer may be another thread's.
    adopt_found_thread(r.injected ? place_of_libc_thread(static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RSP]))
                                  : ThreadPlace{});
    return;
  }
  if ((timer >= 0 && self->timer_number != timer + 1) ||  // of a timer that has been deleted
      r.quiesced.load(std::memory_order_relaxed) ||
      self->phase.load(std::memory_order_acquire) != static_cast<std::uint32_t>(ThreadPhase::live)) {
    return;
  }
  if (session_over(monotonic_ns())) {
    step_aside(nullptr, nullptr, StepAside::now);
    return;
  }
  if (r.injected) {
    follow_mask(*self, context.uc_sigmask.__val[0]);
  }
  take_sample(*self, context);
  find_threads(monotonic_ns());
}

void on_clock(int number, siginfo_t* info, void* context) {
  if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &runtime()) {
    on_tick(*static_cast<ucontext_t*>(context), info->si_timerid);
  } else {
    hand_to_target(number, info, context, clock_signal_wish());
  }
}

void on_watchpoint(const PerfFault& fault, const ucontext_t& context) {
  Runtime& r = runtime();
  const std::uint64_t begin = thread_cpu_ns();
  ThreadState* self = current_thread();
  if (self == nullptr) {
    return;
  }
  const auto event = static_cast<std::uint32_t>(fault.data - watch_mark);
  if ((fault.flags & trap_async) != 0 || !r.observing.load(std::memory_order_relaxed) || !watch_unit().usable()) {
    take_trap_in_handler(*self, event);
    return;
  }
  const Registers registers = registers_of(context);
  watch_unit().trapped(*self, {event, fault.address, registers,
                               static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_EFL]), monotonic_ns()});
  const std::uint64_t cost = thread_cpu_ns() - begin + r.config.trap_cost_ns;
  self->slot->handlers_ns.fetch_add(cost, std::memory_order_relaxed);
  r.budget.spend(cost);
  watch_unit().charge(event, cost);
  if (!watch_unit().suspects(event)) {
    r.budget.explore(cost);
  }
}

void on_alarm() {
  Runtime& r = runtime();
  const std::uint64_t begin = thread_cpu_ns();
  ThreadState* self = current_thread();
  if (self == nullptr) {
    return;
  }
  watch_unit().alarmed(*self, monotonic_ns());
  const std::uint64_t cost = thread_cpu_ns() - begin + r.config.perf_sample_cost_ns;
  self->slot->handlers_ns.fetch_add(cost, std::memory_order_relaxed);
  r.budget.spend(cost);
  r.budget.explore(cost);
}

// Handles a SIGTRAP that somebody sent, or an int3 of the target's. If the target blocks it, we give it back to the
// kernel as it came, for the thread or the process, and it stays pending. A fault cannot be blocked: the kernel kills
// for it.
void on_foreign_trap(int number, siginfo_t* info, void* context) {
  const bool fault = info->si_code > 0;
  if (fault || !block_trap_as_wished(context)) {
    hand_to_target(number, info, context, trap_wish());
    return;
  }
  forgo_traps("sigtrap_used",
              "the program uses SIGTRAP, which it blocks: communication is not observed in it from then on");
  if (info->si_code == SI_TKILL) {
    system_call(SYS_rt_tgsigqueueinfo, kernel_process_id(), kernel_thread_id(), number, info);
  } else {
    system_call(SYS_rt_sigqueueinfo, kernel_process_id(), number, info);
  }
}

void on_trap(int number, siginfo_t* info, void* context) {
  PerfFault fault;
  std::memcpy(&fault, info, sizeof fault);
  if (info->si_code == trap_perf && fault.data == clock_mark) {
    on_tick(*static_cast<ucontext_t*>(context), -1);
  } else if (info->si_code == trap_perf && fault.data == alarm_mark) {
    on_alarm();
  } else if (info->si_code == trap_perf && fault.data - watch_mark < max_words) {
    on_watchpoint(fault, *static_cast<ucontext_t*>(context));
  } else {
    on_foreign_trap(number, info, context);
  }
}

// Handlers run on the alternate stack, which is ours (signals/alternate_stack.h). If no stack is lent, the kernel's
// frame goes onto the interrupted stack, and the handler changes to a stack of ours (handler_entry.cpp).
constexpr int handler_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;

void install(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = flags;
  std::memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
  real_sigaction(number, &action, nullptr);
}

}  // namespace

extern "C" __attribute__((used)) void crosstalk_trap(int number, siginfo_t* info, void* context) {
  run_on_handler_stack(on_trap, number, info, context);
}

extern "C" __attribute__((used)) void crosstalk_clock(int number, siginfo_t* info, void* context) {
  run_on_handler_stack(on_clock, number, info, context);
}

void install_handlers() {
  const int flags = runtime().injected ? handler_flags & ~SA_ONSTACK : handler_flags;
  install(SIGTRAP, crosstalk_enter_trap, flags);
  take_clock_signal(crosstalk_enter_clock, static_cast<std::uint64_t>(flags));
}

}  // namespace crosstalk::in_target
