// SPDX-License-Identifier: Apache-2.0
// Attaching to the arena when the library is loaded, and letting go when the program exits.
#include "collectors/in_target/session/attach.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/objects/blocks.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/objects/off_limits.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sampling/lookahead_sampling.h"
#include "collectors/in_target/session/arena_mapping.h"
#include "collectors/in_target/session/direct_calls.h"
#include "collectors/in_target/session/forks.h"
#include "collectors/in_target/session/handlers.h"
#include "collectors/in_target/session/notices.h"
#include "collectors/in_target/session/process_start.h"
#include "collectors/in_target/signals/handler_stubs.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sys/float_state.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/task_status.h"
#include "collectors/in_target/threads/thread_end.h"
#include "collectors/in_target/threads/threads.h"
#include "collectors/in_target/watch/admission.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {

const char* why_not_observed(std::int32_t recorder) {
  TaskStatus status;
  TaskStatus of_recorder;
  const bool known = read_task_status(0, status);
  if (known && status.tracer != 0) {
    return "a program that another one traces (a debugger?) is not observed: it would be stopped at each of our "
           "signals";
  }
  if (known && status.seccomp_filters != 0 && read_process_status(recorder, of_recorder) &&
      status.seccomp_filters > of_recorder.seccomp_filters) {
    return "a program that was started inside a seccomp filter is not observed: the filter might kill it for it";
  }
  const DirectCalls direct = find_direct_calls();
  if (direct.confines) {
    return "a program that enters a seccomp filter, or has its system calls handed to itself, by an instruction of its "
           "own is not observed: what we call might kill it";
  }
  if (direct.signals) {
    return "a program that sets handlers or masks of signals by an instruction of its own (a Go program?) is not "
           "observed: it would be sent signals that it does not expect";
  }
  return nullptr;
}

void find_fast_clock() {
  int mode = PR_TSC_ENABLE;  // as the process that has executed this one left it
  system_call(SYS_prctl, PR_GET_TSC, &mode, 0, 0, 0);
  if (mode == PR_TSC_ENABLE) {
    vdso_clock_gettime.store(reinterpret_cast<ClockGettime>(next_definition("__vdso_clock_gettime")));  // NOLINT
  }
}

void set_up_watching() {
  Runtime& r = runtime();
  r.budget.start(r.config.budget, &cross_process_state().budget);
  lead_watchpoints_astray(r.config.dead_watchpoints != 0);
  watch_unit().start(r.config.watchpoints_allowed != 0 ? r.config.watchpoints : 0, r.config.horizon_ns);
  board().start(r.config.board_slots);
}

namespace {

// The profile has the process and the reason.
void stay_out(const char* reason) {
  Runtime& r = runtime();
  r.pid = kernel_process_id();
  if (ThreadState* self = begin_main_thread(); self != nullptr) {
    write_process_start(false);
    emit_message("not_observed", reason);
    end_thread(*self);
  }
  track_blocks(false, 0);
}

/// glibc hands all constructors the environment. It leaves `environ` null, for ever, if a library that is initialized
/// before all others (-z initfirst) loads another one. Then the program finds it as it would without us.
class Environment {
 public:
  explicit Environment(char** handed) : missing_(::environ == nullptr) {
    if (missing_) {
      ::environ = handed;
    }
  }
  ~Environment() {
    if (missing_) {
      ::environ = nullptr;
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  bool missing_;
};

__attribute__((constructor(101))) void on_load(int, char**, char** handed) {
  const SavedErrno saved;
  Runtime& r = runtime();
  const Environment environment(handed);
  const char* name = ::getenv(profile::arena_variable);
  const std::uint64_t begin_ns = name != nullptr ? thread_cpu_ns() : 0;
  prepare_real_functions();
  find_off_limits();
  if (name == nullptr || !map_arena(name)) {
    track_blocks(false, 0);
    return;
  }
  find_fast_clock();
  prepare_to_look_ahead();
  remember_environment();
  prepare_exec_wrappers();
  if (!in_recorders_pid_namespace()) {
    r.foreign.store(true, std::memory_order_relaxed);
    track_blocks(false, 0);
    return;
  }
  if (const char* reason = why_not_observed(r.arena.header->recorder_pid); reason != nullptr) {
    stay_out(reason);
    return;
  }
  own_signals(SIGTRAP);
  adopt_handlers();
  install_handlers();
  set_up_watching();
  end_threads_with_a_key();
  watch_forks();
  if (begin_observing(false)) {
    hide_environment();
    track_blocks(true, r.config.heap_threshold);
    adopt_thread_mask();
    on_module_change();
    count_start(begin_ns);
  } else {
    track_blocks(false, 0);
  }
}

__attribute__((destructor(101))) void on_exit_of_process() {
  Runtime& r = runtime();
  if (!observing() || kernel_process_id() != r.pid) {
    return;
  }
  const SavedErrno saved;
  const OwnFloatState float_state;
  on_module_change();
  report_jit_dump();
  ThreadState* self = current_thread();
  if (self != nullptr) {
    withdraw_threads();
    watch_unit().close_all(*self, profile::CloseReason::stopped);
    profile::ProcessEnd record;
    record.header.type = profile::RecordType::process_end;
    record.time_ns = monotonic_ns();
    record.pid = r.pid;
    append(*self, &record, sizeof record, nullptr, 0);
    end_thread(*self);
  }
}

}  // namespace

}  // namespace crosstalk::in_target
