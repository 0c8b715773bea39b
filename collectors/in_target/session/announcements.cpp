// SPDX-License-Identifier: Apache-2.0
// The program is about to do something for itself (contract/core.h): it executes another one, confines itself, or takes
// something of ours.
#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/objects/off_limits.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/memory_events.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/float_state.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/step_aside.h"
#include "collectors/in_target/watch/admission.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {
namespace {

// Stops all clocks and watches of the process; the other threads' clocks stop by the flag, and no other process arms
// any of them.
void quiesce() {
  Runtime& r = runtime();
  r.quiesced.store(true, std::memory_order_seq_cst);
  withdraw_threads();
  if (ThreadState* self = current_thread(); self != nullptr) {
    watch_unit().close_all(*self, profile::CloseReason::stopped);
    stop_clock(*self);
    // Its clocks go on in the executed program: the time up to here belongs to this one.
    self->slot->cpu_ns.store(thread_cpu_ns() - self->cpu_before_ns, std::memory_order_relaxed);
  }
}

}  // namespace

void before_exec() {
  const OwnFloatState float_state;
  profile::ProcessEnd record;
  record.header.type = profile::RecordType::process_end;
  record.time_ns = monotonic_ns();
  record.pid = runtime().pid;
  record.exec = 1;
  quiesce();
  emit(&record, sizeof record, nullptr, 0);
}

void exec_failed() {
  const OwnFloatState float_state;
  Runtime& r = runtime();
  if (!observing()) {  // it has stepped aside meanwhile
    return;
  }
  // The other threads' clocks were never stopped: their ticks count again. For the recorder this is the same process. A
  // second process_start would make it take all other threads' rings for those of an earlier program.
  r.quiesced.store(false, std::memory_order_seq_cst);
  readmit_threads();
  if (ThreadState* self = current_thread(); self != nullptr) {
    start_clock(*self);
  }
}

void on_trap_blocked() {
  if (!observing() || kernel_process_id() != runtime().pid) {
    return;
  }
  const Passage passage;
  if (ThreadState* self = current_thread(); self != nullptr && !self->blocks_traps) {
    self->blocks_traps = self->watch_tried = true;
    end_watching(*self);
  }
}

bool confined() {
  const std::int32_t who = runtime().confined_pid.load(std::memory_order_relaxed);
  return who != 0 && (!observing() || who == kernel_process_id());
}

bool may_make_system_calls() {
  return (observing() || runtime().foreign.load(std::memory_order_relaxed)) && !confined();
}

void on_seccomp() {
  if (session_config() != nullptr) {
    runtime().confined_pid.store(kernel_process_id(), std::memory_order_relaxed);
  }
  if (observing() && kernel_process_id() == runtime().pid) {  // else a vfork child is about to confine itself
    step_aside("seccomp", "the program confines itself with seccomp: it is not observed from then on",
               StepAside::without_trace);
  }
}

void on_traced() {
  if (observing() && kernel_process_id() == runtime().pid) {
    step_aside("traced", "the program lets itself be traced: it is not observed from then on",
               StepAside::without_trace);
  }
}

void on_user_dispatch() {
  if (observing() && kernel_process_id() == runtime().pid) {
    step_aside("user_dispatch",
               "the program has its system calls handed to itself (PR_SET_SYSCALL_USER_DISPATCH): it is not observed "
               "from then on",
               StepAside::without_trace);
  }
}

void on_breakpoint_wanted() {
  if (observing() && kernel_process_id() == runtime().pid) {
    forgo_watchpoints("breakpoints_wanted",
                      "the program opens breakpoints of its own: communication is not observed in it from then on");
  }
}

void on_own_descriptors(bool new_thread) {
  if (observing() && kernel_process_id() == runtime().pid && (new_thread || registry().live() > 1)) {
    forgo_descriptors(
        "own_descriptors",
        "a thread of the program has descriptors of its own, apart from the others': communication is not "
        "observed from then on");
  }
}

void on_limit_raised() {
  const Passage passage;
  if (!observing() || kernel_process_id() != runtime().pid) {
    return;
  }
  if (ThreadState* self = current_thread(); self != nullptr) {
    watch_unit().close_all(*self, profile::CloseReason::stopped);
  }
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    if (thread.phase.load(std::memory_order_acquire) == static_cast<std::uint32_t>(ThreadPhase::live)) {
      renew_events(thread);
      forgo_perf_clock(thread);
      MemoryEvents::close(thread);  // opened again, under other numbers, when its clock is next reviewed
    }
  }
  watch_unit().renew_remote_events();
}

void on_unmap(std::uint64_t begin, std::uint64_t bytes) {
  if (holds_kernel_clocks(begin, bytes)) {
    forgo_vdso();
  }
}

bool on_signal_limit() {
  return observing() && kernel_process_id() == runtime().pid &&
         forgo_timers("signal_limit",
                      "the program needs all pending signals that its limit (ulimit -i) allows: threads without a perf "
                      "clock are not sampled from then on");
}

void on_signal_taken(int signal_number) {
  if (!observing() || kernel_process_id() != runtime().pid) {
    return;
  }
  if (signal_number == clock_signal) {
    forgo_timers("clock_signal_used", "the program uses signal 32, which the clocks of most threads need");
    release_clock_signal();
  } else {
    step_aside("sigtrap_used", "the program takes SIGTRAP by a system call of its own: it is not observed from then on",
               StepAside::without_trace);
  }
}

}  // namespace crosstalk::in_target
