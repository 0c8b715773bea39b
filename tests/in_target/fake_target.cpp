// SPDX-License-Identifier: Apache-2.0
#include "tests/in_target/fake_target.h"

#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/blocks.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/objects/off_limits.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/regions/marked_regions.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/memory_events.h"
#include "collectors/in_target/sampling/presence.h"
#include "collectors/in_target/sampling/sampling.h"
#include "collectors/in_target/session/notices.h"
#include "collectors/in_target/signals/alternate_stack.h"
#include "collectors/in_target/signals/handler_stubs.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sync/measured_wait.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/found_threads.h"
#include "collectors/in_target/threads/step_aside.h"
#include "collectors/in_target/threads/thread_end.h"

namespace crosstalk::in_target {
namespace test {
namespace {

// Constant-initialised: the library's own start, before main(), calls these functions, too.
constinit FakeTarget* target = nullptr;

void note_aside(const char* code) {
  if (target != nullptr) {
    target->aside.emplace_back(code != nullptr ? code : "");
  }
}

void count(std::uint32_t FakeTarget::*what) {
  if (target != nullptr) {
    ++(target->*what);
  }
}

}  // namespace

FakeTarget::FakeTarget() {
  trap_action.sa_handler = SIG_DFL;
  target = this;
}

FakeTarget::~FakeTarget() { target = nullptr; }

}  // namespace test

// Clocks and samples

void start_clock(ThreadState& /*self*/) { test::count(&test::FakeTarget::clocks_started); }
void stop_clock(ThreadState& /*self*/) { test::count(&test::FakeTarget::clocks_stopped); }
void forgo_perf_clock(ThreadState& /*thread*/) { test::count(&test::FakeTarget::perf_clocks_forgone); }
void forget_lives() {}
void note_life(std::uint64_t cpu_ns, std::uint64_t /*switches*/) {
  if (test::target != nullptr) {
    test::target->life_ns = cpu_ns;
  }
}
void charge_presence(ThreadState& /*self*/) {}
void take_sample(ThreadState& /*self*/, const ucontext_t& context) {
  if (test::target != nullptr) {
    test::target->sampled_at.push_back(static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]));
  }
}
void take_last_accesses(ThreadState& /*self*/) {
  if (test::target != nullptr && test::target->accesses_closed == 0) {
    ++test::target->accesses_told;
  }
}
void MemoryEvents::close(ThreadState& /*thread*/) { test::count(&test::FakeTarget::accesses_closed); }
void MemoryEvents::forget(ThreadState& /*thread*/) { test::count(&test::FakeTarget::accesses_forgotten); }

// Threads

void begin_waits(const ThreadState& self) {
  if (test::target != nullptr) {
    test::target->waits_begun_of = self.number;
  }
}
void end_waits() { test::count(&test::FakeTarget::waits_ended); }
void begin_regions(const ThreadState& self) {
  if (test::target != nullptr) {
    test::target->regions_begun_of = self.number;
  }
}
void end_regions(const ThreadState& self) {
  if (test::target != nullptr) {
    test::target->regions_ended_of = self.number;
  }
}
void find_threads(std::uint64_t /*now_ns*/) { test::count(&test::FakeTarget::looks_for_threads); }
void adopt_found_thread(const ThreadPlace& place) {
  if (test::target != nullptr) {
    test::target->adopted.push_back(place);
  }
}
void found_threads_after_fork() {}
ThreadPlace place_of_libc_thread(std::uint64_t stack_pointer) { return {stack_pointer, stack_pointer, 1}; }
void end_threads_with_a_key() {}

// Leaving the program alone

void step_aside(const char* code, const char* /*text*/, StepAside /*how*/) { test::note_aside(code); }
void forgo_traps(const char* code, const char* /*text*/) { test::note_aside(code); }
void forgo_watchpoints(const char* code, const char* /*text*/) { test::note_aside(code); }
void forgo_descriptors(const char* code, const char* /*text*/) { test::note_aside(code); }
void forgo_vdso() { test::note_aside("vdso"); }
bool forgo_timers(const char* code, const char* /*text*/) {
  test::note_aside(code);
  return test::target != nullptr && test::target->timers_are_ours;
}
bool in_recorders_pid_namespace() { return test::target == nullptr || test::target->in_recorders_pid_namespace; }
DirectCalls find_direct_calls() { return test::target != nullptr ? test::target->direct_calls : DirectCalls{}; }

// Interposition

void prepare_real_functions() {}
void* next_definition(const char* /*name*/) { return nullptr; }
void find_off_limits() {}
bool holds_kernel_clocks(std::uint64_t begin, std::uint64_t bytes) {
  return test::target != nullptr && begin < test::target->vdso_at + 4096 && test::target->vdso_at < begin + bytes;
}
void track_blocks(bool on, std::uint64_t /*threshold_bytes*/) {
  if (on) {
    test::count(&test::FakeTarget::tracked_blocks);
  } else {
    test::count(&test::FakeTarget::untracked_blocks);
  }
}
void blocks_after_fork() {}
void on_module_change() {}
void report_jit_dump() {}
void hold_modules_for_fork() {}
void release_modules_after_fork() {}
void modules_after_fork() {}
void remember_environment() {}
void hide_environment() {}
void environment_after_fork() {}
void prepare_exec_wrappers() {}
void unpatch_modules_in_child() {}
void shared_memory_after_fork() {}

// Signals

void own_signals(int /*trap_signal*/) {}
void disown_signals() { test::count(&test::FakeTarget::disowned_signals); }
void adopt_handlers() {}
void adopt_thread_mask() {}
bool block_trap_as_wished(void* context) {
  if (test::target == nullptr || !test::target->blocks_trap) {
    return false;
  }
  sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, SIGTRAP);
  return true;
}
const struct sigaction* target_trap_action() {
  static const struct sigaction none {};
  return test::target != nullptr ? &test::target->trap_action : &none;
}
int real_sigaction(int signal_number, const struct sigaction* action, struct sigaction* old_action) {
  return ::sigaction(signal_number, action, old_action);
}
HandlerStack* lend_handler_stack() { return nullptr; }
HandlerStack* lend_handler_stack(ucontext_t& /*context*/) { return nullptr; }
void reinstate_handler_stack(HandlerStack& /*own*/, ucontext_t& /*context*/) {}
void handler_stacks_after_fork() {}
void enter_target_handler(void (* /*handler*/)(int, siginfo_t*, void*), bool /*on_alternate_stack*/, int number,
                          ucontext_t& /*context*/) {
  test::target->handed_over.push_back(number);
  siglongjmp(test::target->way_out, 1);
}

// The parts of sys/perf_events.h and sys/hidden_numbers.h that attaching needs beside the fake kernel.

void close_clock_event(OwnedEvent& event) { close_event(event); }
void switch_off_before_closing(bool /*on*/) {}
void lead_watchpoints_astray(bool /*on*/) {}
void forget_events_open() {}
void reserve_hidden_numbers(int /*any_fd*/) {}
void raise_limits_in(std::int32_t /*pid*/) {}
void mend_inherited_limit() {}
void hold_limit_for_fork() {}
void release_limit_after_fork() {}

}  // namespace crosstalk::in_target
