// SPDX-License-Identifier: Apache-2.0
// Sessions in a process that ran before us, which a recorder has brought this library into (collectors/injector/): it
// has one of the threads call crosstalk_start() and, at the end, crosstalk_stop(), with all signals blocked. In between
// the process is observed like one that was launched under observation, except that threads keep their masks and
// alternate stacks, because nobody could put them back. Each existing thread gets a timer, whose first tick makes it
// known.
//
// Then the library is dormant: no event, no timer, no handler, no changed entry in a module's tables. Memory that a
// leaving thread may still use stays mapped, and serves the next session.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstring>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/blocks.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/lookahead_sampling.h"
#include "collectors/in_target/session/arena_mapping.h"
#include "collectors/in_target/session/attach.h"
#include "collectors/in_target/session/forks.h"
#include "collectors/in_target/session/handlers.h"
#include "collectors/in_target/session/notices.h"
#include "collectors/in_target/session/process_start.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/float_state.h"
#include "collectors/in_target/sys/handler_stack.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/kernel_signals.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/found_table.h"
#include "collectors/in_target/threads/found_threads.h"
#include "collectors/in_target/threads/inspection.h"
#include "collectors/in_target/threads/step_aside.h"
#include "collectors/in_target/threads/thread_end.h"
#include "collectors/in_target/threads/threads.h"
#include "collectors/injection_answer.h"

namespace crosstalk::in_target {
namespace {

using collectors::InjectionAnswer;
using collectors::InjectionState;

constinit bool prepared = false;  // work that is done once in a process
constinit bool patched = false;

// CPU time of a call's part that grows with the number of threads: the calling thread has its own work to do, and may
// get a processor for only a part of the time.
constexpr std::uint64_t longest_part_ns = 6'000'000;

void ask_for_more();
void set_state(InjectionState state);
InjectionState state();

// ---- the end

void write_process_end() {
  profile::ProcessEnd record;
  record.header.type = profile::RecordType::process_end;
  record.time_ns = monotonic_ns();
  record.pid = runtime().pid;
  emit(&record, sizeof record, nullptr, 0);
}

void end_all_threads() {
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    if (thread.phase.load(std::memory_order_acquire) == static_cast<std::uint32_t>(ThreadPhase::live)) {
      end_lost_thread(thread, thread.tid.load(std::memory_order_relaxed));
    }
  }
}

/// Takes a last tick of the calling thread, which has all signals blocked here: it would stay pending. A signal of that
/// number from another sender is libc's, and goes on waiting.
void take_own_tick() {
  const std::uint64_t clock = bit_in_mask(clock_signal);
  const timespec at_once{};
  siginfo_t info{};
  if (system_call(SYS_rt_sigtimedwait, &clock, &info, &at_once, sizeof clock) == clock_signal &&
      info.si_code != SI_TIMER) {
    system_call(SYS_rt_tgsigqueueinfo, kernel_process_id(), kernel_thread_id(), clock_signal, &info);
  }
}

/// Restores the state that the process's threads share.
void put_back() {
  release_clock_signal();
  disown_signals();
  runtime().rings.stop();
  handler_stacks().give_all();
}

/// Removes the handlers when no thread is in one, and no signal of ours is pending that could kill the target. This can
/// take until a thread gets a processor, so it works in parts: this thread does not wait, nor ask about thousands of
/// threads at once, and the recorder has it called again.
class Leaving {
 public:
  void begin() {
    inspection_.begin();
    handlers_over_ = false;
  }
  /// Handlers begin nothing any more. Once each thread has been seen outside, all that earlier handlers opened exists
  /// and can be closed; once each has been seen outside again, no thread will enter a handler.
  void go_on(std::uint64_t until_cpu_ns) {
    take_own_tick();
    if (!handlers_over_) {
      if (!over(Inspection::Events::open, until_cpu_ns)) {
        return;
      }
      handlers_over_ = true;
      forget_found_threads();
      end_all_threads();
      inspection_.begin();
    }
    if (over(Inspection::Events::closed, until_cpu_ns)) {
      put_back();
      set_state(InjectionState::dormant);
    }
  }

 private:
  bool over(Inspection::Events events, std::uint64_t until_cpu_ns) {
    const Inspection::Found found = inspection_.go_on(events, until_cpu_ns);
    if (found == Inspection::Found::not_all_seen) {
      ask_for_more();
    }
    return found == Inspection::Found::nobody_inside;
  }

  Inspection inspection_;
  bool handlers_over_ = false;
};

constinit Leaving leaving;

const char* stop() {
  Runtime& r = runtime();
  if (r.pid != kernel_process_id() || !r.injected) {
    return nullptr;
  }
  if (observing()) {
    on_module_change();
    write_process_end();
    step_aside(nullptr, nullptr, StepAside::now);
  }
  if (patched) {
    unpatch_modules();
    patched = false;
  }
  if (state() != InjectionState::leaving) {
    set_state(InjectionState::leaving);
    leaving.begin();
  }
  leaving.go_on(thread_cpu_ns() + longest_part_ns);
  return nullptr;
}

// ---- the start

/// Forgets the last session, if there was one. Null: all is gone.
const char* forget_session() {
  Runtime& r = runtime();
  if (r.arena.header == nullptr) {
    return nullptr;
  }
  if (state() != InjectionState::dormant) {
    stop();
    if (state() != InjectionState::dormant) {
      return "a thread of it is still about to leave the collector that an earlier recording has left in it; try again";
    }
  }
  forget_threads();
  forget_blocks();
  forget_modules();
  shared_memory_after_fork();
  forget_steps_aside();
  leave_own_memory(r.arena.header);
  system_call(SYS_munmap, r.arena.header,
              r.rings.shared_end() - reinterpret_cast<std::byte*>(r.arena.header));  // NOLINT
  r.arena.header = nullptr;
  return nullptr;
}

ThreadState* begin_calling_thread() {
  const ThreadPlace place =
      place_of_libc_thread(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)));  // NOLINT
  return begin_thread(place.stack_low, place.stack_high, place.thread_pointer);
}

void take_signals() {
  switch_off_before_closing(true);
  own_signals(SIGTRAP);
  leave_masks_alone();
  install_handlers();
}

constinit std::atomic<bool> calls_missed{false};

void say_calls_not_seen() {
  if (!calls_missed.exchange(true)) {
    emit_message("calls_not_seen",
                 "the program has more references to functions of the C library than the collector can follow: some "
                 "heap blocks and threads are not known by how they were made");
  }
}

/// True: all modules are done with.
bool follow_calls(Patched patched_modules) {
  if (patched_modules == Patched::not_all) {
    say_calls_not_seen();
  }
  return patched_modules != Patched::not_yet;
}

void find_more_threads() {
  look_soon();
  find_threads(monotonic_ns());
  if (has_more_to_judge()) {
    ask_for_more();
  }
}

bool begin_process() {
  Runtime& r = runtime();
  raise_limits_in(r.pid);
  ThreadState* self = begin_calling_thread();
  if (self == nullptr) {
    return false;
  }
  write_process_start(false);
  r.observing.store(true, std::memory_order_release);
  on_module_change();
  tell_end_of_calling_thread(self->thread_pointer);
  start_clock(*self);
  calls_missed.store(false);
  if (!follow_calls(patch_modules())) {
    look_for_modules_again();
  }
  patched = true;
  track_blocks(true, r.config.heap_threshold);
  find_more_threads();
  return true;
}

void prepare_once() {
  if (!prepared) {
    prepared = true;
    find_fast_clock();
    prepare_to_look_ahead();
    end_threads_with_a_key();
    watch_forks();
  }
}

const char* begin_session(const char* arena) {
  Runtime& r = runtime();
  r.pid = kernel_process_id();
  r.injected = true;
  if (!map_arena(arena)) {
    return "it cannot map the recorder's memory: it may not open it, or has a limit of its own memory (ulimit -v, -d) "
           "that leaves no room";
  }
  r.config.follow_children = 0;  // programs that it executes have their own environment, which we may not change
  if (!in_recorders_pid_namespace()) {
    return "it has a pid namespace of its own";
  }
  if (const char* reason = why_not_observed(r.arena.header->recorder_pid); reason != nullptr) {
    return reason;
  }
  prepare_once();
  set_up_watching();
  take_signals();
  set_state(InjectionState::observing);
  if (!begin_process()) {
    stop();
    return "there is no memory for its threads' records";
  }
  return nullptr;
}

const char* start(const char* arena) {
  const Runtime& r = runtime();
  if (r.arena.header != nullptr && !r.injected) {
    return "it has the library from its start: it is, or was, observed by who launched it";
  }
  if (observing()) {
    if (r.arena.header->state.load(std::memory_order_relaxed) ==
            static_cast<std::uint32_t>(profile::SessionState::running) &&
        system_call(SYS_kill, r.arena.header->recorder_pid, 0) >= 0) {
      return "it is observed already, by another crosstalk record";
    }
  }
  const char* const left = forget_session();
  return left != nullptr ? left : begin_session(arena);
}

}  // namespace

bool on_new_modules() { return !runtime().injected || follow_calls(patch_new_modules()); }

// ---- called by the recorder

extern "C" {
__attribute__((visibility("default"))) constinit InjectionAnswer crosstalk_injection_answer{};
}

namespace {

void set_state(InjectionState state) {
  std::atomic_ref(crosstalk_injection_answer.state).store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

void ask_for_more() { crosstalk_injection_answer.more = 1; }

InjectionState state() {
  return static_cast<InjectionState>(std::atomic_ref(crosstalk_injection_answer.state).load(std::memory_order_acquire));
}

void answer(const char* reason) {
  InjectionAnswer& out = crosstalk_injection_answer;
  const std::size_t length = reason != nullptr ? strlen(reason) : 0;
  const std::size_t fitting = length < sizeof out.reason ? length : sizeof out.reason - 1;
  if (reason != nullptr) {
    memcpy(static_cast<char*>(out.reason), reason, fitting);
  }
  out.reason[fitting] = 0;
  out.done_ns = monotonic_ns();
  std::atomic_ref(out.done).fetch_add(1, std::memory_order_release);
}

// After on_load(), which knows whether the program was launched under observation.
__attribute__((constructor(102))) void on_loaded() {
  if (runtime().arena.header != nullptr) {
    set_state(InjectionState::preloaded);
  }
  crosstalk_injection_answer.done_ns = monotonic_ns();
  std::atomic_ref(crosstalk_injection_answer.loaded).store(1, std::memory_order_release);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void crosstalk_start(const char* arena) {
  const SavedErrno saved;
  const OwnFloatState float_state;
  crosstalk_injection_answer.more = 0;
  answer(start(arena));
}

extern "C" __attribute__((visibility("default"))) void crosstalk_go_on(const char* /*nothing*/) {
  const SavedErrno saved;
  const OwnFloatState float_state;
  crosstalk_injection_answer.more = 0;
  if (observing()) {
    find_more_threads();
  }
  answer(nullptr);
}

extern "C" __attribute__((visibility("default"))) void crosstalk_stop(const char* /*nothing*/) {
  const SavedErrno saved;
  const OwnFloatState float_state;
  crosstalk_injection_answer.more = 0;
  answer(stop());
}

}  // namespace crosstalk::in_target
